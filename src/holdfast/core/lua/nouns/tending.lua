-- tending: the limits of throttles are set and come to an end, and what that leaves to do
-- is done, a bounded part of it in each call.
local record = require("base.record")
local queue_flags = require("nouns.queue_flags")
local job = require("nouns.job")
local limits = require("nouns.limits")
local queues = require("nouns.queue")
local slots = require("nouns.slots")
local state = require("nouns.state")
local M = {}

local THROTTLED = record.FLAG.THROTTLED
local SCANNED = 100 -- leases looked at in one call, when a queue gets a limit

-- The end of a job that runs has to be noticed.
function M.mark(ctx, jid)
  local r = job.read(ctx, jid)
  if r and r.state == state.RUNNING and not record.has(r.flags, THROTTLED) then
    r.flags = record.with(r.flags, THROTTLED)
    job.write(ctx, jid, r)
  end
end

-- Jobs that ran before their queue had a limit hold slots too. Marks some more of them;
-- returns where to go on, MARKED if nowhere. A scan meets every lease that was there
-- when it began, also one whose end was moved.
local function mark_some(ctx, queue, cursor)
  local found = call("ZSCAN", queue.leases, ("%.0f"):format(cursor), "COUNT", SCANNED)
  for i = 1, #found[2], 2 do M.mark(ctx, found[2][i]) end
  return found[1] == "0" and limits.MARKED or tonumber(found[1])
end

local function unlimit(ctx, queue)
  queue_flags.set_limit(queue, 0)
  queues.wake(ctx, queue)
end

-- Does what there is to do for a throttle: its limit may have come to an end, jobs may be
-- left that it may let go or that have to be marked.
local function keep_up(ctx, id)
  local limit, queue = limits.read(ctx, id), slots.queue_of(ctx, id)
  local cursor = limit.cursor
  if limit.ends <= ctx.now then
    limits.delete(ctx, id)
    limit.ends, cursor = limits.NEVER, limits.MARKED
    if queue then unlimit(ctx, queue) end
  elseif cursor ~= limits.MARKED then
    cursor = mark_some(ctx, queue, cursor)
    limits.write(ctx, id, limit.maximum, limit.ends, cursor)
    queues.wake(ctx, queue) -- one that is not marked yet may have ended
  end
  local again = slots.promote(ctx, id) or cursor ~= limits.MARKED
  limits.schedule_upkeep(ctx, id, again and 0 or limit.ends)
end

-- Goes on with what calls before had to leave, and with limits that come to an end.
function M.continue(ctx)
  local id = limits.due(ctx)
  if id then keep_up(ctx, id) end
end

-- A new maximum (0: none, nil: as before), for `span` ms (0: as long as before). A higher
-- one lets pending jobs go.
function M.set(ctx, id, maximum, span)
  local was, queue = limits.read(ctx, id), slots.queue_of(ctx, id)
  local ends = span > 0 and ctx.now + span or was.ends > ctx.now and was.ends or limits.NEVER
  maximum = maximum or was.ends > ctx.now and was.maximum or 0
  limits.write(ctx, id, maximum, ends, queue and maximum > 0 and 0 or limits.MARKED)
  if queue then
    queue_flags.set_limit(queue, maximum)
    queues.wake(ctx, queue)
  end
  keep_up(ctx, id)
end

-- No definition, no limit; who holds a slot keeps it. Says whether there was one.
function M.delete(ctx, id)
  local queue, was = slots.queue_of(ctx, id), limits.delete(ctx, id)
  if queue then unlimit(ctx, queue) end
  keep_up(ctx, id)
  return was
end

-- A queue that has no jobs loses its limit; nobody waits for a slot.
function M.forget(ctx, queue)
  if limits.delete(ctx, queue.own) == 0 then return end
  queue_flags.set_limit(queue, 0)
  limits.schedule_upkeep(ctx, queue.own, limits.NEVER)
end

-- [maximum, used, pending, ms until the limit ends (-1: it has no end, -2: no limit is defined)]
function M.state(ctx, id)
  local limit = limits.read(ctx, id)
  local pending, used = call("ZCARD", ctx.keys.pending .. id), slots.used(ctx, id)
  if not limit.is_defined or limit.ends <= ctx.now then return { 0, used, pending, -2 } end
  return { limit.maximum, used, pending, limit.ends < limits.NEVER and limit.ends - ctx.now or -1 }
end

-- The maximum, and for how many seconds (-1: no end, -2: not defined).
function M.definition(ctx, id)
  local found = M.state(ctx, id)
  local left = found[4]
  return found[1], left < 0 and left or math.floor((left + 500) / 1000)
end

return M
