-- pop: jobs are leased to a worker.
--
-- Per queue: what came due is moved, leases that were lost are handed out again
-- before anything that waits, then the ready ones in order. A worker that is
-- going to wait raises the idle bit; one that was woken passes the bell on while
-- there is work.
local late = require("base.late")
local keys = require("base.keys")
local root = require("base.root")
local grant = require("nouns.grant")
local queues = require("nouns.queue")
local throttle = require("nouns.throttle")
local timer = require("nouns.timer")
local M = {}

M.WILL_WAIT, M.WOKEN = 1, 2

local call
late.bind(function() call = redis.call end)

-- Grants what is ready, at most `want`. Looks again where jobs were gone.
local function grant_ready(at, queue, give, want)
  local got, full = 0, false
  while got < want and not full do
    local left = want - got
    local ready = left == 1 and call("ZPOPMIN", queue.waiting) or call("ZPOPMIN", queue.waiting, left)
    if not ready[1] then return got end
    local granted
    if ready[3] then
      granted, full = grant.many(at, queue, give, ready)
    else
      granted = grant.one(at, queue, give, at.order.jid(ready[1]), ready[2])
    end
    got = got + granted
  end
  return got
end

-- The same for a queue with a limit, or with jobs that a lifted limit left aside:
-- those come when nothing else is ready.
local function grant_throttled(at, queue, give, want)
  local free = give.limited and throttle.free(queue, give.limit) or want
  if free < want then want = free end
  local got = grant_ready(at, queue, give, want)
  if got >= want then return got end
  if throttle.promote(at, queue, want - got) then return got + grant_ready(at, queue, give, want - got) end
  if not give.limited then queues.set_aside(queue, false) end
  return got
end

-- Pops from one queue. Returns how many were granted, and the queue's due time.
local function from_queue(at, queue, give, want, mode)
  local due, flags, limit, heartbeat = queues.control(queue)
  if flags % 2 == queues.PAUSED then return 0, 0 end
  local got, now = 0, at.now
  local length = give.lease
  if length == 0 then length = heartbeat > 0 and heartbeat or root.heartbeat(at) end
  give.ends, give.length = now + length, length
  give.limited, give.limit = flags % 4 >= queues.HAS_LIMIT, limit
  local reached = due > 0 and due <= now
  if reached and want > 0 then
    timer.promote(at, queue, at.bounds.due)
    got = grant.lost(at, queue, give, want)
  end
  if got < want then
    local take = flags >= queues.HAS_LIMIT and grant_throttled or grant_ready
    got = got + take(at, queue, give, want - got)
  end
  if reached then
    due = timer.earliest(queue)
    queues.set_control(queue, due, flags, limit, heartbeat)
  elseif got > 0 and (due == 0 or give.ends < due) then
    due = give.ends
    queues.set_control(queue, due, flags, limit, heartbeat)
  end
  if mode > 0 and got < want then
    queues.raise_idle(queue)
  elseif mode == M.WOKEN then
    queues.raise_idle(queue)
    if call("ZCARD", queue.waiting) > 0 then queues.signal(queue) end
  end
  return got, due
end

-- The sooner one of two due times, of which 0 means never.
local function sooner(one, other)
  if one == 0 or other > 0 and other < one then return other end
  return one
end

-- How many ms until then, -1 for never.
local function away(at, due)
  if due == 0 then return -1 end
  return due > at.now and due - at.now or 0
end

-- The ms until one of these queues has something due, without a pop.
function M.due(at, args, first, last)
  local next_due = 0
  for i = first, last, 2 do
    local due, flags = queues.control(keys.of_queue(at, args[i]))
    if flags % 2 ~= queues.PAUSED then next_due = sooner(next_due, due) end
  end
  return away(at, next_due)
end

-- `give` says worker, lease (ms, 0: the queue's) and out, the list rows are
-- appended to; `args[first … last]` are (queue, mode) pairs, tried in order.
-- Returns how many were granted, and the ms until something is due (-1: never).
function M.run(at, give, want, args, first, last)
  local got, next_due = 0, 0
  for i = first, last, 2 do
    local granted, due = from_queue(at, keys.of_queue(at, args[i]), give, want - got, tonumber(args[i + 1]))
    got, next_due = got + granted, sooner(next_due, due)
  end
  return got, away(at, next_due)
end

return M
