-- putting: queue.put and job.requeue.
local keys = require("base.keys")
local words = require("doors.protocol.words")
local job = require("nouns.job")
local queues = require("nouns.queue")
local put_one = require("verbs.put_one")
local M = {}

local function number_in(found, key, refusal)
  if not found[key] then return nil end
  return words.finite(found[key]) or words.refuse(refusal)
end

-- What this core does not do yet is refused rather than left out in silence.
local function refuse_unserved(found)
  for _, key in ipairs({ "tags", "depends" }) do
    if found[key] and #words.list(found[key], key) > 0 then words.refuse(key .. " are not served yet") end
  end
end

local function read_options(to, found)
  local retries = number_in(found, "retries", 'Put(): Arg "retries" not a number')
  to.retries = retries and math.floor(retries)
  to.priority = number_in(found, "priority", 'Put(): Arg "priority" not a number')
  local wish = { throttles = found.throttles and words.list(found.throttles, "throttles") }
  refuse_unserved(found)
  return wish
end

-- queue.put worker queue jid klass data delay [key value]...
local function read(args)
  local name = words.text(args, 4, words.NO_QUEUE)
  local jid = words.text(args, 5, 'Put(): Arg "jid" missing')
  local klass = words.text(args, 6, 'Put(): Arg "klass" missing')
  local data = words.data(args, 7, 'Put(): Arg "data" missing or not JSON')
  local delay = words.number(args, 8, 'Put(): Arg "delay" not a number')
  local to = { queue = false, delay = delay * 1000, by = args[3], limited = false, first = 0, idle = false }
  local wish = #args > 8 and read_options(to, words.pairs(args, 9, "Odd number of additional args")) or nil
  return jid, klass, data, name, to, wish
end

local function put(at, jid, klass, data, name, to, wish)
  to.queue = keys.of_queue(at, name)
  to.first, to.idle = queues.enter(at, to.queue, 1)
  put_one.run(at, to, "move", jid, klass, data, wish)
  return jid
end

M["queue.put"] = function(at, args) return put(at, read(args)) end

M["job.requeue"] = function(at, args)
  local jid = words.text(args, 5, words.NO_JID)
  if not job.read(at, jid) then words.refuse("Requeue(): Job " .. jid .. " does not exist") end
  local klass, data, name, to, wish
  jid, klass, data, name, to, wish = read(args)
  return put(at, jid, klass, data, name, to, wish)
end

return M
