-- putting: queue.put and job.requeue.
local late = require("base.late")
local keys = require("base.keys")
local words = require("doors.protocol.words")
local job = require("nouns.job")
local put_one = require("verbs.put_one")
local M = {}

local floor
late.bind(function() floor = math.floor end)

local function number_in(found, key, refusal)
  if not found[key] then return nil end
  return words.finite(found[key]) or words.refuse(refusal)
end

-- Options, in the order in which they are refused.
local function read_options(to, found)
  local wish = {}
  local retries = number_in(found, "retries", 'Put(): Arg "retries" not a number')
  to.retries = retries and floor(retries)
  wish.tags = found.tags and words.list(found.tags, "tags")
  to.priority = number_in(found, "priority", 'Put(): Arg "priority" not a number')
  wish.depends = found.depends and words.names(found.depends, "depends")
  wish.throttles = found.throttles and words.names(found.throttles, "throttles")
  return wish
end

-- queue.put worker queue jid klass data delay [key value]...
local function read(at, args)
  local name = words.text(args, 4, words.NO_QUEUE)
  local jid = words.text(args, 5, 'Put(): Arg "jid" missing')
  local klass = words.text(args, 6, 'Put(): Arg "klass" missing')
  local data = words.data(args, 7, 'Put(): Arg "data" missing or not JSON')
  local delay = words.number(args, 8, 'Put(): Arg "delay" not a number')
  local to = { queue = keys.of_queue(at, name), delay = delay * 1000, by = args[3], alone = true, is_put = true }
  local wish = #args > 8 and read_options(to, words.pairs(args, 9, "Odd number of additional args")) or nil
  return jid, klass, data, to, wish
end

local function put(at, jid, klass, data, to, wish)
  local refused = put_one.run(at, to, "move", jid, klass, data, wish)
  if refused then words.refuse_code("Put", refused) end
  return jid
end

M["queue.put"] = function(at, args) return put(at, read(at, args)) end

M["job.requeue"] = function(at, args)
  local jid = words.text(args, 5, words.NO_JID)
  if not job.read(at, jid) then words.refuse("Requeue(): Job " .. jid .. " does not exist") end
  return put(at, read(at, args))
end

return M
