-- recurrence: a template that puts a job again and again.
--
-- The hash `r:<jid>` holds the template, and how many jobs it has put (`count`); the
-- score in its queue's set `recurring` is the next occurrence, in units of
-- `ctx.bounds.unit` ms: whole ones are when jobs are put. While it is paused, the field
-- `paused` holds the next occurrence, in ms, and the score is when the pause ends, `NEVER_DUE` if that is not known;
-- who paused it, why and since when are kept for people.
local keys = require("base.keys")
local event = require("nouns.event.event")
local declaration = require("nouns.recurrence.declaration")
local plan = require("nouns.recurrence.plan")
local queues = require("nouns.queue.queue")
local M = {}

-- Of a template that follows a calendar: cron and zone as they were written, tz (which data of zones the plan was made
-- with), missed (`once`, `skip`, `all` or a number: which of the missed moments get a job), overlap (`allow`, `skip` or
-- `queue`; of templates with an interval too), jitter, start and end (ms, for those who plan).
M.OF_CALENDAR = { "cron", "zone", "tz", "missed", "overlap", "jitter", "start", "end" }
local NOMINAL, LEFT_OUT = "nominal", "missed-count" -- fields: the moment that is next, and how many got no job
M.NUMBERS = { "interval", "backlog", "priority", "retries", "since" }
M.LISTS = { "tags", "throttles", "options" }
local NEVER_DUE = 2 ^ 53 - 1
M.NEVER_DUE = NEVER_DUE
local BY, WHY, SINCE, UNTIL = "paused-by", "paused-why", "paused-since", "paused-until"

-- The template of that name as a table, or nil. interval and since are in ms, backlog
-- 0 is no limit, options are what `nouns.job.options` keeps, expires relative to the put, losses
-- also the default; paused is nil, or the next occurrence; pause_ends is nil, or when it is resumed (ms).
function M.read(ctx, jid)
  local found = call("HMGET", ctx.keys.template .. jid, "queue", "klass", "data", "count", "interval", "backlog",
    "priority", "retries", "since", "tags", "throttles", "options", "paused", "cron", "overlap",
    UNTIL)
  if not found[1] then return nil end
  local t = { queue = found[1], klass = found[2], data = found[3], count = tonumber(found[4]) }
  t.paused, t.overlap = tonumber(found[13]), found[15] or nil
  t.pause_ends = tonumber(found[16] or nil)
  for i, name in ipairs(M.NUMBERS) do t[name] = tonumber(found[4 + i]) end
  for i, name in ipairs(M.LISTS) do t[name] = mp_unpack(found[9 + i]) end
  if found[14] then t.calendar = M.calendar_of(ctx, jid) end
  return t
end

-- What a template that follows a calendar has beside the others, by name; `nominal` is the moment that is next, in ms.
function M.calendar_of(ctx, jid)
  local found, calendar = call("HMGET", ctx.keys.template .. jid, NOMINAL, unpack_(M.OF_CALENDAR)), {}
  for i, name in ipairs(M.OF_CALENDAR) do calendar[name] = found[i + 1] or "" end
  calendar.nominal = tonumber(found[1] or nil) or 0
  return calendar
end

-- Writes it; nil: the template has an interval.
function M.write_calendar(ctx, jid, calendar)
  local key = ctx.keys.template .. jid
  if not calendar then
    call("HDEL", key, NOMINAL, unpack_(M.OF_CALENDAR))
    return plan.forget(ctx, jid)
  end
  local words = {}
  for _, name in ipairs(M.OF_CALENDAR) do words[#words + 1], words[#words + 2] = name, calendar[name] or "" end
  call("HSET", key, unpack_(words))
end

-- The same of one that has an interval: whether its jobs may overlap, nil for `allow`.
function M.write_overlap(ctx, jid, overlap)
  if overlap then call("HSET", ctx.keys.template .. jid, "overlap", overlap)
  else call("HDEL", ctx.keys.template .. jid, "overlap") end
end

-- The moment of the calendar that is next (ms), and how many moments got no job so far.
function M.nominal(ctx, jid)
  local found = call("HMGET", ctx.keys.template .. jid, NOMINAL, LEFT_OUT)
  return tonumber(found[1] or nil) or 0, tonumber(found[2] or nil) or 0
end

function M.set_nominal(ctx, jid, nominal) call("HSET", ctx.keys.template .. jid, NOMINAL, nominal) end

function M.leave_out(ctx, jid, count)
  if count > 0 then call("HINCRBY", ctx.keys.template .. jid, LEFT_OUT, count) end
end

function M.write(ctx, jid, t)
  local words = { "queue", t.queue, "klass", t.klass, "data", t.data, "count", t.count }
  for _, name in ipairs(M.NUMBERS) do words[#words + 1], words[#words + 2] = name, t[name] end
  for _, name in ipairs(M.LISTS) do words[#words + 1], words[#words + 2] = name, mp_pack(t[name]) end
  call("HSET", ctx.keys.template .. jid, unpack_(words))
  event.changed(ctx, "recurring")
end

function M.write_tags(ctx, jid, t) call("HSET", ctx.keys.template .. jid, "tags", mp_pack(t.tags)) end

-- The count after some more jobs were put; of a calendar, also the moment that is next, if it is another.
function M.write_count(ctx, jid, t, nominal)
  if nominal then call("HSET", ctx.keys.template .. jid, "count", t.count, NOMINAL, nominal)
  else call("HSET", ctx.keys.template .. jid, "count", t.count) end
end

-- When the next occurrence is, in ms; of a paused template, when it would be.
function M.next(ctx, jid, t)
  if t.paused then return t.paused end
  local score = call("ZSCORE", keys.of_queue(ctx, t.queue).recurring, jid)
  return tonumber(score or 0) * ctx.bounds.unit
end

-- Sets the next occurrence. A worker that waits is woken for an early one. A paused template
-- is in its queue's set and stays paused.
function M.place(ctx, jid, t, when)
  local queue = keys.of_queue(ctx, t.queue)
  if when < ctx.bounds.earliest then when = ctx.bounds.earliest end
  if t.paused then
    call("HSET", ctx.keys.template .. jid, "paused", when)
    call("ZADD", queue.recurring, t.pause_ends and t.pause_ends / ctx.bounds.unit or NEVER_DUE, jid)
    if t.pause_ends then queues.due_at(ctx, queue, t.pause_ends) end
  else
    call("ZADD", queue.recurring, when / ctx.bounds.unit, jid)
    queues.due_at(ctx, queue, when)
  end
end

-- It puts no jobs until `resume`, or until a moment (0: none), at which it is resumed by itself.
function M.pause(ctx, jid, t, who, why, until_)
  t.paused, t.pause_ends = M.next(ctx, jid, t), until_ > 0 and until_ or nil
  if t.pause_ends then call("HSET", ctx.keys.template .. jid, UNTIL, until_)
  else call("HDEL", ctx.keys.template .. jid, UNTIL) end
  call("HSET", ctx.keys.template .. jid, BY, who, WHY, why, SINCE, ctx.now)
  M.place(ctx, jid, t, t.paused)
  event.changed(ctx, "recurring")
end

-- The first moment of a plan that is not over at `since`, NEVER_DUE if there is none; and how many are.
local function first_left(ctx, jid, when, since)
  local over = 0
  while when < since do
    local nominal
    over = over + 1
    when, nominal = plan.take(ctx, jid)
    if not when then return NEVER_DUE, over end
    M.set_nominal(ctx, jid, nominal)
  end
  return when, over
end

-- It puts jobs again, from the first occurrence that is not over at `since`: those before get no job, and are counted.
function M.resume(ctx, jid, t, since)
  local when, over = t.paused
  if t.calendar then
    when, over = first_left(ctx, jid, when, since)
  else
    over = when < since and ceil((since - when) / t.interval) or 0
    when = when + over * t.interval
  end
  t.paused = nil
  call("HDEL", ctx.keys.template .. jid, "paused", BY, WHY, SINCE, UNTIL)
  M.leave_out(ctx, jid, over)
  M.place(ctx, jid, t, when)
  event.changed(ctx, "recurring")
end

-- Who paused a template, why, and since when (ms); nothing is known of a pause by an older core.
function M.pause_of(ctx, jid, t)
  if not t.paused then return "", "", 0 end
  local found = call("HMGET", ctx.keys.template .. jid, BY, WHY, SINCE)
  return found[1] or "", found[2] or "", tonumber(found[3] or nil) or 0
end

-- It leaves the queue.
function M.leave(ctx, jid, t) call("ZREM", keys.of_queue(ctx, t.queue).recurring, jid) end

function M.delete(ctx, jid, t)
  M.leave(ctx, jid, t)
  if t.calendar then plan.forget(ctx, jid) end
  declaration.forget(ctx, jid)
  call("UNLINK", ctx.keys.template .. jid)
  event.changed(ctx, "recurring")
end

-- Up to `count` templates of a queue that are due, by their time.
function M.due(ctx, queue, count)
  return call("ZRANGE", queue.recurring, "-inf", ctx.now / ctx.bounds.unit, "BYSCORE", "LIMIT", 0, count)
end

-- The earliest next occurrence in a queue, in ms; `queues.NEVER` if all are paused.
function M.earliest(ctx, queue)
  local score = tonumber(call("ZRANGE", queue.recurring, 0, 0, "WITHSCORES")[2])
  return score and score < NEVER_DUE and score * ctx.bounds.unit or queues.NEVER
end

return M
