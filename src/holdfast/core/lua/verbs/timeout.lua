-- timeout: an operator takes running jobs away from their workers, at once. They
-- are ready again ahead of everything; no retry is used up.
local refuse = require("base.refuse")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local queues = require("nouns.queue.queue")
local state = require("nouns.job.state")
local tally = require("nouns.queue.tally")
local M = {}

local function one(ctx, jid, r)
  local queue = lease.release(ctx, jid, r)
  history.add(ctx, jid, r, history.TIMED_OUT)
  ctx.events.lock_lost(ctx, jid, r.worker)
  state.move(r, state.STALLED)
  tally.count(ctx, queue, "timed-out", 1)
  local first, idle = queues.take_sequence(ctx, queue, 1)
  call("ZADD", queue.waiting, ctx.order.urgent(r, first + 1, jid))
  ctx.record.ready(r, ctx.now)
  if idle then queues.signal(queue) end
  job.write(ctx, jid, r)
end

-- Refused as a whole if one of them is not running. Returns how many there were.
function M.run(ctx, args, first, last)
  local records, seen = {}, {}
  for i = first, last do
    local r = job.read(ctx, args[i])
    if not r or r.state ~= state.RUNNING then refuse.call("WRONG_STATE", args[i] .. " is not running") end
    records[i] = not seen[args[i]] and r
    seen[args[i]] = true
  end
  for i = first, last do
    if records[i] then one(ctx, args[i], records[i]) end
  end
  return last - first + 1
end

return M
