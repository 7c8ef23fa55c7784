-- throttle: how many jobs of a queue may run at once. Where any throttle may bind
-- any job, `at` holds `holders` in place of this.
--
-- A native queue's own throttle `ql:q:<queue>` needs no set of holders: they are
-- the leases of the queue. Its limit lies in the queue's control record, and a
-- job popped under a limit carries the flag THROTTLED, so that an unlimited
-- queue pays one comparison.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local refuse = require("base.refuse")
local history = require("nouns.history")
local job = require("nouns.job")
local queues = require("nouns.queue")
local state = require("nouns.state")
local M = {}

local OWN = "^ql:q:(.+)$"
local MOST_MARKED = 1000
local call
late.bind(function() call = redis.call end)

-- The queue whose own throttle `id` is, or nil.
local function queue_of(at, id)
  local name = id:match(OWN)
  if name then return keys.of_queue(at, name) end
end

-- Free slots of a queue with that limit.
local function free_slots(queue, limit) return limit - call("ZCARD", queue.leases) end

-- Whether a job that is put must be set aside. `limited`: the queue's bit says that
-- there is a limit.
function M.is_full(_, queue, _, _, limited)
  if not limited then return false end
  local _, _, limit = queues.control(queue)
  return free_slots(queue, limit) < 1
end

-- Sets a job aside that finds its queue full.
function M.park(at, queue, jid, r)
  history.tell(at, jid, r, history.THROTTLED, queue.name)
  state.move(r, state.THROTTLED)
  call("ZADD", queue.throttled, at.now, jid)
end

-- Parked jobs become ready, in the order they came, up to the free slots. Says
-- whether there were any.
local function promote(at, queue, free)
  if free < 1 then return false end
  local parked = call("ZPOPMIN", queue.throttled, math.min(free, at.bounds.released))
  for i = 1, #parked, 2 do
    local jid = parked[i]
    local r = job.read(at, jid)
    if r and r.state == state.THROTTLED then
      job.make_ready(at, queue, jid, r)
      job.write(at, jid, r)
    end
  end
  return parked[1] ~= nil
end

-- A job set aside is put elsewhere or deleted.
function M.withdraw(_, queue, jid) call("ZREM", queue.throttled, jid) end

-- The slot of a job that is popped: under a limit, its lease.
function M.keep(r, give)
  if give.limited then r.flags = record.with(r.flags, record.FLAG.THROTTLED) end
end

-- The same for a job that was ready; it is not refused here.
function M.take(_, _, _, r, give) M.keep(r, give) end

-- For a pop: how many slots the queue has free, by its limit and flags; nil if no job
-- of it has to be looked at.
function M.room(_, queue, give, limit, flags)
  if flags < queues.HAS_LIMIT then return nil end
  give.limited = flags % 4 >= queues.HAS_LIMIT
  return give.limited and free_slots(queue, limit) or 1 / 0
end

-- Pops under a limit, or from a queue where a lifted limit left jobs aside: those
-- come when nothing else is ready. `ready` grants up to so many, `room` are free.
function M.grant(at, queue, give, want, room, ready)
  if room < want then want = room end
  local got = ready(at, queue, give, want)
  if got >= want then return got end
  if promote(at, queue, want - got) then return got + ready(at, queue, give, want - got) end
  if not give.limited then queues.set_aside(queue, false) end
  return got
end

-- A slot came back: hand it on, and wake whoever found the queue full.
function M.release(at, queue, _, r)
  if not record.has(r.flags, record.FLAG.THROTTLED) then return end
  r.flags = r.flags - record.FLAG.THROTTLED
  local _, flags, limit = queues.control(queue)
  if flags % 4 < queues.HAS_LIMIT then return end
  promote(at, queue, free_slots(queue, limit))
  queues.ring(queue)
end

-- Jobs that ran before there was a limit hold slots too: their end has to be
-- noticed. Beyond so many, a worker that waits learns of an end at its next look.
local function mark_holders(at, queue)
  local jids = call("ZRANGE", queue.leases, 0, MOST_MARKED - 1)
  for i = 1, #jids do
    local r = job.read(at, jids[i])
    if r and r.state == state.RUNNING then
      r.flags = record.with(r.flags, record.FLAG.THROTTLED)
      job.write(at, jids[i], r)
    end
  end
end

-- A new limit (0: none). A higher one promotes at once; where a limit is taken
-- away, nobody releases slots any more, so pops look after what is left aside.
local function set_limit(at, queue, limit)
  queues.set_limit(queue, limit)
  if limit > 0 then mark_holders(at, queue) end
  promote(at, queue, limit == 0 and at.bounds.released or free_slots(queue, limit))
  queues.set_aside(queue, limit == 0 and call("ZCARD", queue.throttled) > 0)
  queues.ring(queue)
end

local function own(at, id)
  local queue = queue_of(at, id)
  if not queue then refuse.call("THROTTLE_NOT_FOUND", id .. " is not a queue's own throttle, ql:q:<queue>") end
  return queue
end

-- The sets of who holds a slot and of who waits for one.
function M.sets(at, id)
  local queue = queue_of(at, id)
  if queue then return queue.leases, queue.throttled end
  return at.keys.holders .. id, at.keys.pending .. id
end

function M.set(at, id, maximum) set_limit(at, own(at, id), maximum) end

-- [maximum, used, pending]
function M.state(at, id)
  local queue = own(at, id)
  local _, _, limit = queues.control(queue)
  return { limit, call("ZCARD", queue.leases), call("ZCARD", queue.throttled) }
end

return M
