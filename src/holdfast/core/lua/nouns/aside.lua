-- aside: jobs that a full throttle keeps from running, pending until it lets them go.
local keys = require("base.keys")
local history = require("nouns.history")
local touched_jobs = require("nouns.touched_jobs")
local job = require("nouns.job")
local state = require("nouns.state")
local M = {}

local PIECE = 512

-- Sets a job aside, pending on the throttle that is full.
function M.hold_back(ctx, queue, jid, r, id)
  if r.state ~= state.THROTTLED then history.add(ctx, jid, r, history.THROTTLED, queue.name) end
  state.move(r, state.THROTTLED)
  local pending = ctx.keys.pending .. id
  call("ZADD", pending, ctx.order.pending(ctx, pending), jid)
  call("ZADD", queue.throttled, ctx.now, jid)
end

-- The same for jobs that are new, whose records say so.
function M.hold_back_new(ctx, queue, id, jids)
  local pending, waits, entries = ctx.keys.pending .. id, {}, {}
  local rank = ctx.order.pending(ctx, pending)
  for i = 1, #jids do
    waits[2 * i - 1], waits[2 * i] = rank + (i - 1) * ctx.order.STEP, jids[i]
    entries[2 * i - 1], entries[2 * i] = ctx.now, jids[i]
  end
  call("ZADD", pending, unpack_(waits))
  call("ZADD", queue.throttled, unpack_(entries))
end

-- A job set aside is put elsewhere or deleted; `ids` are its throttles.
function M.withdraw(ctx, queue, jid, ids)
  call("ZREM", queue.throttled, jid)
  for i = 1, #ids do call("ZREM", ctx.keys.pending .. ids[i], jid) end
end

-- The first `count` pending jobs become ready; they get the slot when they are popped.
-- Returns how many.
function M.promote(ctx, id, count)
  local promoted = 0
  while count - promoted >= 1 do
    local left = floor(count - promoted < PIECE and count - promoted or PIECE)
    local pending = call("ZPOPMIN", ctx.keys.pending .. id, left)
    if not pending[1] then break end
    touched_jobs.took(ctx.keys.pending .. id, pending)
    for i = 1, #pending, 2 do
      local jid = pending[i]
      local r = job.read(ctx, jid)
      local queue = r and keys.of_queue(ctx, r.queue)
      if r and call("ZREM", queue.throttled, jid) == 1 then
        job.make_ready(ctx, queue, jid, r)
        job.write(ctx, jid, r)
        promoted = promoted + 1
      end
    end
  end
  return promoted
end

return M
