-- throttle: how many jobs may run at once.
--
-- A native queue's own throttle `ql:q:<queue>` needs no set of holders: they are
-- the leases of the queue. Its limit lies in the queue's control record, and a
-- job popped under a limit carries the flag THROTTLED, so that an unlimited
-- queue pays one comparison.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local history = require("nouns.history")
local job = require("nouns.job")
local queues = require("nouns.queue")
local state = require("nouns.state")
local M = {}

local OWN = "^ql:q:(.+)$"
local call
late.bind(function() call = redis.call end)

-- The queue whose own throttle `id` is, or nil.
function M.queue_of(at, id)
  local name = id:match(OWN)
  if name then return keys.of_queue(at, name) end
end

-- Free slots of a queue with that limit.
function M.free(queue, limit) return limit - call("ZCARD", queue.leases) end

-- Sets a job aside that finds its queue full.
function M.park(at, queue, jid, r)
  history.tell(at, jid, r, history.THROTTLED, queue.name)
  state.move(r, state.THROTTLED)
  call("ZADD", queue.throttled, at.now, jid)
end

-- Parked jobs become ready, in the order they came, up to the free slots. Says
-- whether there were any.
function M.promote(at, queue, free)
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

-- A slot came back: hand it on, and wake whoever found the queue full.
function M.release(at, queue, _, r)
  if not record.has(r.flags, record.FLAG.THROTTLED) then return end
  r.flags = r.flags - record.FLAG.THROTTLED
  local _, flags, limit = queues.control(queue)
  if flags % 4 < queues.HAS_LIMIT then return end
  M.promote(at, queue, M.free(queue, limit))
  queues.ring(queue)
end

-- A new limit (0: none). A higher one promotes at once; where a limit is taken
-- away, nobody releases slots any more, so pops look after what is left aside.
function M.set(at, queue, limit)
  queues.set_limit(queue, limit)
  M.promote(at, queue, limit == 0 and at.bounds.released or M.free(queue, limit))
  queues.set_aside(queue, limit == 0 and call("ZCARD", queue.throttled) > 0)
  queues.ring(queue)
end

return M
