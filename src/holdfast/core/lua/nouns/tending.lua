-- tending: the limits of throttles are set and come to an end, and what that leaves to do
-- is done, a bounded part of it in each call.
local late = require("base.late")
local record = require("base.record")
local bounded = require("nouns.bounded")
local job = require("nouns.job")
local limits = require("nouns.limits")
local queues = require("nouns.queue")
local slots = require("nouns.slots")
local state = require("nouns.state")
local M = {}

local THROTTLED = record.FLAG.THROTTLED
local SCANNED = 100 -- leases looked at in one call, when a queue gets a limit

local call
late.bind(function() call = redis.call end)

-- The end of a job that runs has to be noticed.
function M.mark(at, jid)
  local r = job.read(at, jid)
  if r and r.state == state.RUNNING and not record.has(r.flags, THROTTLED) then
    r.flags = record.with(r.flags, THROTTLED)
    job.write(at, jid, r)
  end
end

-- Jobs that ran before their queue had a limit hold slots too. Marks some more of them;
-- returns where to go on, MARKED if nowhere. A scan meets every lease that was there
-- when it began, also one whose end was moved.
local function mark_some(at, queue, cursor)
  local found = call("ZSCAN", queue.leases, ("%.0f"):format(cursor), "COUNT", SCANNED)
  for i = 1, #found[2], 2 do M.mark(at, found[2][i]) end
  return found[1] == "0" and limits.MARKED or tonumber(found[1])
end

local function unlimit(at, queue)
  bounded.set_limit(queue, 0)
  queues.ring(at, queue)
end

-- Does what there is to do for a throttle: its limit may have come to an end, jobs may be
-- left that it may let go or that have to be marked.
local function tend(at, id)
  local limit, queue = limits.read(at, id), slots.queue_of(at, id)
  local cursor = limit.cursor
  if limit.ends <= at.now then
    limits.delete(at, id)
    limit.ends, cursor = limits.NEVER, limits.MARKED
    if queue then unlimit(at, queue) end
  elseif cursor ~= limits.MARKED then
    cursor = mark_some(at, queue, cursor)
    limits.write(at, id, limit.maximum, limit.ends, cursor)
    queues.ring(at, queue) -- one that is not marked yet may have ended
  end
  local again = slots.promote(at, id) or cursor ~= limits.MARKED
  limits.tend_at(at, id, again and 0 or limit.ends)
end

-- Goes on with what calls before had to leave, and with limits that come to an end.
function M.go_on(at)
  local id = limits.due(at)
  if id then tend(at, id) end
end

-- A new maximum (0: none, nil: as before), for `span` ms (0: as long as before). A higher
-- one lets pending jobs go.
function M.set(at, id, maximum, span)
  local was, queue = limits.read(at, id), slots.queue_of(at, id)
  local ends = span > 0 and at.now + span or was.ends > at.now and was.ends or limits.NEVER
  maximum = maximum or was.ends > at.now and was.maximum or 0
  limits.write(at, id, maximum, ends, queue and maximum > 0 and 0 or limits.MARKED)
  if queue then
    bounded.set_limit(queue, maximum)
    queues.ring(at, queue)
  end
  tend(at, id)
end

-- No definition, no limit; who holds a slot keeps it. Says whether there was one.
function M.delete(at, id)
  local queue, was = slots.queue_of(at, id), limits.delete(at, id)
  if queue then unlimit(at, queue) end
  tend(at, id)
  return was
end

-- A queue that has no jobs loses its limit; nobody waits for a slot.
function M.forget(at, queue)
  if limits.delete(at, queue.own) == 0 then return end
  bounded.set_limit(queue, 0)
  limits.tend_at(at, queue.own, limits.NEVER)
end

-- [maximum, used, pending, ms until the limit ends (-1: it has no end, -2: no limit is defined)]
function M.state(at, id)
  local limit = limits.read(at, id)
  local pending, used = call("ZCARD", at.keys.pending .. id), slots.used(at, id)
  if not limit.is_defined or limit.ends <= at.now then return { 0, used, pending, -2 } end
  return { limit.maximum, used, pending, limit.ends < limits.NEVER and limit.ends - at.now or -1 }
end

-- The maximum, and for how many seconds (-1: no end, -2: not defined).
function M.definition(at, id)
  local found = M.state(at, id)
  local left = found[4]
  return found[1], left < 0 and left or math.floor((left + 500) / 1000)
end

return M
