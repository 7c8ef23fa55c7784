-- placement: where a job goes that comes into a queue.
local admission = require("nouns.job.admission")
local dependency = require("nouns.dependency.dependency")
local job = require("nouns.job.job")
local queues = require("nouns.queue.queue")
local state = require("nouns.job.state")
local tally = require("nouns.queue.tally")
local M = {}

-- A job that comes by a put or a move: behind its open parents, until its due time, behind
-- a full throttle, or among the ready ones. For `target` see `verbs.put`. Writes the record.
function M.settle(ctx, target, jid, r)
  local queue, delay = target.queue, target.delay
  local reason, full = admission.at_arrival(ctx, target, jid, r, nil)
  if reason == state.DEPENDS then
    dependency.hold_back(ctx, queue, jid, r, delay)
  elseif reason == state.THROTTLED then
    if target.first then queues.return_sequence(queue, 1) end
    ctx.throttles.hold_back(ctx, queue, jid, r, full)
  elseif reason == state.SCHEDULED then
    job.place(ctx, queue, jid, r, delay)
  else
    local first, idle = target.first, target.idle
    if not first then first, idle = queues.enter(ctx, queue, 1) end
    job.place(ctx, queue, jid, r, 0, first, idle)
  end
  if r.state ~= state.WAITING then tally.count(ctx, queue, "later", 1) end
  job.write(ctx, jid, r)
end

-- A job that continues in this queue after an attempt elsewhere; all but its parents is
-- asked when it is popped. Writes the record.
function M.continue(ctx, queue, jid, r, delay)
  if dependency.is_open(r) then
    dependency.hold_back(ctx, queue, jid, r, delay)
  else
    job.place(ctx, queue, jid, r, delay)
  end
  tally.count(ctx, queue, "later", 1)
  job.write(ctx, jid, r)
end

return M
