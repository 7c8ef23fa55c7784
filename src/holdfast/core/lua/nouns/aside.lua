-- aside: jobs that a full throttle keeps from running, pending until it lets them go.
local late = require("base.late")
local keys = require("base.keys")
local history = require("nouns.history")
local in_hand = require("nouns.in_hand")
local job = require("nouns.job")
local state = require("nouns.state")
local M = {}

local PIECE = 512

local call, floor, unpack_
late.bind(function() call, floor, unpack_ = redis.call, math.floor, unpack end)

-- Sets a job aside, pending on the throttle that is full.
function M.park(at, queue, jid, r, id)
  if r.state ~= state.THROTTLED then history.tell(at, jid, r, history.THROTTLED, queue.name) end
  state.move(r, state.THROTTLED)
  local pending = at.keys.pending .. id
  call("ZADD", pending, at.order.pending(at, pending), jid)
  call("ZADD", queue.throttled, at.now, jid)
end

-- The same for jobs that are new, whose records say so.
function M.park_new(at, queue, id, jids)
  local pending, waits, parked = at.keys.pending .. id, {}, {}
  local rank = at.order.pending(at, pending)
  for i = 1, #jids do
    waits[2 * i - 1], waits[2 * i] = rank + (i - 1) * at.order.STEP, jids[i]
    parked[2 * i - 1], parked[2 * i] = at.now, jids[i]
  end
  call("ZADD", pending, unpack_(waits))
  call("ZADD", queue.throttled, unpack_(parked))
end

-- A job set aside is put elsewhere or deleted; `ids` are its throttles.
function M.withdraw(at, queue, jid, ids)
  call("ZREM", queue.throttled, jid)
  for i = 1, #ids do call("ZREM", at.keys.pending .. ids[i], jid) end
end

-- The first `count` pending jobs become ready; they get the slot when they are popped.
-- Returns how many.
function M.promote(at, id, count)
  local promoted = 0
  while count - promoted >= 1 do
    local left = floor(count - promoted < PIECE and count - promoted or PIECE)
    local pending = call("ZPOPMIN", at.keys.pending .. id, left)
    if not pending[1] then break end
    in_hand.took(at.keys.pending .. id, pending)
    for i = 1, #pending, 2 do
      local jid = pending[i]
      local r = job.read(at, jid)
      local queue = r and keys.of_queue(at, r.queue)
      if r and call("ZREM", queue.throttled, jid) == 1 then
        job.make_ready(at, queue, jid, r)
        job.write(at, jid, r)
        promoted = promoted + 1
      end
    end
  end
  return promoted
end

return M
