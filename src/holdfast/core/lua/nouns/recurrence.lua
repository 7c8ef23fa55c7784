-- recurrence: a template that puts a job again and again.
--
-- The hash `r:<jid>` holds the template, and how many jobs it has put (`count`); the
-- score in its queue's set `recurring` is the next occurrence, in units of
-- `at.bounds.unit` ms: whole ones are when jobs are put.
local late = require("base.late")
local keys = require("base.keys")
local event = require("nouns.event")
local queues = require("nouns.queue")
local M = {}

M.NUMBERS = { "interval", "backlog", "priority", "retries", "since" }
M.LISTS = { "tags", "throttles", "options" }

local call, unpack_, mp_pack, mp_unpack
late.bind(function() call, unpack_, mp_pack, mp_unpack = redis.call, unpack, cmsgpack.pack, cmsgpack.unpack end)

-- The template of that name as a table, or nil. interval and since are in ms, backlog
-- 0 is no limit, options are what `nouns.options` keeps, expires relative to the put, losses
-- also the default.
function M.read(at, jid)
  local found = call("HMGET", at.keys.template .. jid, "queue", "klass", "data", "count", "interval", "backlog",
    "priority", "retries", "since", "tags", "throttles", "options")
  if not found[1] then return nil end
  local t = { queue = found[1], klass = found[2], data = found[3], count = tonumber(found[4]) }
  for i, name in ipairs(M.NUMBERS) do t[name] = tonumber(found[4 + i]) end
  for i, name in ipairs(M.LISTS) do t[name] = mp_unpack(found[9 + i]) end
  return t
end

function M.write(at, jid, t)
  local words = { "queue", t.queue, "klass", t.klass, "data", t.data, "count", t.count }
  for _, name in ipairs(M.NUMBERS) do words[#words + 1], words[#words + 2] = name, t[name] end
  for _, name in ipairs(M.LISTS) do words[#words + 1], words[#words + 2] = name, mp_pack(t[name]) end
  call("HSET", at.keys.template .. jid, unpack_(words))
  event.changed(at, "recurring")
end

function M.write_tags(at, jid, t) call("HSET", at.keys.template .. jid, "tags", mp_pack(t.tags)) end

-- The count after some more jobs were put.
function M.write_count(at, jid, t) call("HSET", at.keys.template .. jid, "count", t.count) end

-- When the next occurrence is, in ms.
function M.next(at, jid, t)
  local score = call("ZSCORE", keys.of_queue(at, t.queue).recurring, jid)
  return tonumber(score or 0) * at.bounds.unit
end

-- Sets the next occurrence. Whoever waits for work learns of an early one.
function M.place(at, jid, t, when)
  local queue = keys.of_queue(at, t.queue)
  if when < at.bounds.earliest then when = at.bounds.earliest end
  call("ZADD", queue.recurring, when / at.bounds.unit, jid)
  queues.due_at(at, queue, when)
end

-- Another queue's turn, or nobody's.
function M.leave(at, jid, t) call("ZREM", keys.of_queue(at, t.queue).recurring, jid) end

function M.delete(at, jid, t)
  M.leave(at, jid, t)
  call("UNLINK", at.keys.template .. jid)
  event.changed(at, "recurring")
end

-- Up to `count` templates of a queue that are due, by their time.
function M.due(at, queue, count)
  return call("ZRANGE", queue.recurring, "-inf", at.now / at.bounds.unit, "BYSCORE", "LIMIT", 0, count)
end

-- The earliest next occurrence in a queue, in ms.
function M.earliest(at, queue)
  local score = tonumber(call("ZRANGE", queue.recurring, 0, 0, "WITHSCORES")[2])
  return score and score * at.bounds.unit or queues.NEVER
end

return M
