-- recurrence: a template that puts a job again and again.
--
-- The hash `r:<jid>` holds the template, and how many jobs it has put (`count`); the
-- score in its queue's set `recurring` is the next occurrence, in units of
-- `ctx.bounds.unit` ms: whole ones are when jobs are put.
local keys = require("base.keys")
local event = require("nouns.event")
local queues = require("nouns.queue")
local M = {}

M.NUMBERS = { "interval", "backlog", "priority", "retries", "since" }
M.LISTS = { "tags", "throttles", "options" }

-- The template of that name as a table, or nil. interval and since are in ms, backlog
-- 0 is no limit, options are what `nouns.options` keeps, expires relative to the put, losses
-- also the default.
function M.read(ctx, jid)
  local found = call("HMGET", ctx.keys.template .. jid, "queue", "klass", "data", "count", "interval", "backlog",
    "priority", "retries", "since", "tags", "throttles", "options")
  if not found[1] then return nil end
  local t = { queue = found[1], klass = found[2], data = found[3], count = tonumber(found[4]) }
  for i, name in ipairs(M.NUMBERS) do t[name] = tonumber(found[4 + i]) end
  for i, name in ipairs(M.LISTS) do t[name] = mp_unpack(found[9 + i]) end
  return t
end

function M.write(ctx, jid, t)
  local words = { "queue", t.queue, "klass", t.klass, "data", t.data, "count", t.count }
  for _, name in ipairs(M.NUMBERS) do words[#words + 1], words[#words + 2] = name, t[name] end
  for _, name in ipairs(M.LISTS) do words[#words + 1], words[#words + 2] = name, mp_pack(t[name]) end
  call("HSET", ctx.keys.template .. jid, unpack_(words))
  event.changed(ctx, "recurring")
end

function M.write_tags(ctx, jid, t) call("HSET", ctx.keys.template .. jid, "tags", mp_pack(t.tags)) end

-- The count after some more jobs were put.
function M.write_count(ctx, jid, t) call("HSET", ctx.keys.template .. jid, "count", t.count) end

-- When the next occurrence is, in ms.
function M.next(ctx, jid, t)
  local score = call("ZSCORE", keys.of_queue(ctx, t.queue).recurring, jid)
  return tonumber(score or 0) * ctx.bounds.unit
end

-- Sets the next occurrence. A worker that waits is woken for an early one.
function M.place(ctx, jid, t, when)
  local queue = keys.of_queue(ctx, t.queue)
  if when < ctx.bounds.earliest then when = ctx.bounds.earliest end
  call("ZADD", queue.recurring, when / ctx.bounds.unit, jid)
  queues.due_at(ctx, queue, when)
end

-- It leaves the queue.
function M.leave(ctx, jid, t) call("ZREM", keys.of_queue(ctx, t.queue).recurring, jid) end

function M.delete(ctx, jid, t)
  M.leave(ctx, jid, t)
  call("UNLINK", ctx.keys.template .. jid)
  event.changed(ctx, "recurring")
end

-- Up to `count` templates of a queue that are due, by their time.
function M.due(ctx, queue, count)
  return call("ZRANGE", queue.recurring, "-inf", ctx.now / ctx.bounds.unit, "BYSCORE", "LIMIT", 0, count)
end

-- The earliest next occurrence in a queue, in ms.
function M.earliest(ctx, queue)
  local score = tonumber(call("ZRANGE", queue.recurring, 0, 0, "WITHSCORES")[2])
  return score and score * ctx.bounds.unit or queues.NEVER
end

return M
