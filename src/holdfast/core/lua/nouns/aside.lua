-- aside: jobs that a full throttle keeps from running, pending until it lets them go.
local late = require("base.late")
local keys = require("base.keys")
local history = require("nouns.history")
local in_hand = require("nouns.in_hand")
local job = require("nouns.job")
local state = require("nouns.state")
local M = {}

local PIECE = 512

local call, floor
late.bind(function() call, floor = redis.call, math.floor end)

-- Sets a job aside, pending on the throttle that is full.
function M.park(at, queue, jid, r, id)
  if r.state ~= state.THROTTLED then history.tell(at, jid, r, history.THROTTLED, queue.name) end
  state.move(r, state.THROTTLED)
  local pending = at.keys.pending .. id
  call("ZADD", pending, at.order.pending(at, pending), jid)
  call("ZADD", queue.throttled, at.now, jid)
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
