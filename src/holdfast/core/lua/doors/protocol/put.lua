-- put: queue.put and job.requeue.
local keys = require("base.keys")
local arguments = require("doors.protocol.arguments")
local job = require("nouns.job.job")
local put_one = require("verbs.put_one")
local M = {}

local function number_in(found, key, refusal)
  if not found[key] then return nil end
  return arguments.finite(found[key]) or arguments.refuse(refusal)
end

-- Options, in the order in which they are refused.
local function read_options(target, found)
  local opts = {}
  local retries = number_in(found, "retries", 'Put(): Arg "retries" not a number')
  target.retries = retries and floor(retries)
  opts.tags = found.tags and arguments.list(found.tags, "tags")
  target.priority = number_in(found, "priority", 'Put(): Arg "priority" not a number')
  opts.depends = found.depends and arguments.names(found.depends, "depends")
  opts.throttles = found.throttles and arguments.names(found.throttles, "throttles")
  return opts
end

-- queue.put worker queue jid klass data delay [key value]...
local function read(ctx, args)
  local name = arguments.text(args, 4, arguments.NO_QUEUE)
  local jid = arguments.text(args, 5, 'Put(): Arg "jid" missing')
  local klass = arguments.text(args, 6, 'Put(): Arg "klass" missing')
  local data = arguments.data(args, 7, 'Put(): Arg "data" missing or not JSON')
  local delay = arguments.number(args, 8, 'Put(): Arg "delay" not a number')
  local target = { queue = keys.of_queue(ctx, name), delay = delay * 1000, by = args[3], alone = true, is_put = true }
  local opts = #args > 8 and read_options(target, arguments.pairs(args, 9, "Odd number of additional args")) or nil
  return jid, klass, data, target, opts
end

local function put(ctx, jid, klass, data, target, opts)
  local refused = put_one.run(ctx, target, "move", jid, klass, data, opts)
  if refused then arguments.refuse_code("Put", refused) end
  return jid
end

M["queue.put"] = function(ctx, args) return put(ctx, read(ctx, args)) end

M["job.requeue"] = function(ctx, args)
  local jid = arguments.text(args, 5, arguments.NO_JID)
  if not job.read(ctx, jid) then arguments.refuse("Requeue(): Job " .. jid .. " does not exist") end
  return put(ctx, read(ctx, args))
end

return M
