-- due: a queue's next due time was reached, and what the next one is.
local queues = require("nouns.queue.queue")
local recurrence = require("nouns.recurrence.recurrence")
local occurrences = require("nouns.recurrence.occurrence")
local timer = require("nouns.lease.timer")
local M = {}

local PROMOTED = 0.5 -- a delayed job that is made ready takes half as long as a lost lease

local function first_of(set) return tonumber(call("ZRANGE", set, 0, 0, "WITHSCORES")[2]) end

-- Recurring jobs are put, which a queue without `room` is spared, and delayed ones made
-- ready, as many as a pop of `want` may bring. Returns whether there was room.
function M.bring(ctx, queue, grant, want, room)
  local free, bound = not room or room >= 1, ctx.bounds.due
  if free and first_of(queue.recurring) then
    grant.upkeep = grant.upkeep - occurrences.run(ctx, queue, bound and min(bound, floor(grant.upkeep)) or want)
  end
  local most = free and want or 0
  if bound then most = min(bound, floor(grant.upkeep / PROMOTED)) end
  grant.upkeep = grant.upkeep - PROMOTED * timer.promote(ctx, queue, most)
  return free
end

-- The earliest moment at which this queue has something due, and the same without its
-- recurring jobs.
local function earliest(ctx, queue)
  local due, lost = first_of(queue.scheduled) or queues.NEVER, first_of(queue.leases)
  if lost and lost < due then due = lost end
  local recurs = first_of(queue.recurring) and recurrence.earliest(ctx, queue)
  return recurs and recurs < due and recurs or due, due
end

-- The timer of a queue has come. Returns whether there may be something to do; if not, notes when there will be: the
-- end of a lease stays in the timer when its job is done.
function M.has_come(ctx, queue)
  local _, flags, limit, heartbeat = queues.control(queue)
  local due = earliest(ctx, queue)
  if due <= ctx.now or queues.is_paused(flags) or call("EXISTS", queue.waiting) == 1 then return true end
  queues.set_due(ctx, queue, due, flags, limit, heartbeat)
  return false
end

-- Notes the next due time, now if there are jobs `unseen`. Returns it as a worker has to
-- know it: a worker that finds no room need not come back for recurring jobs; it is woken.
function M.note(ctx, queue, free, unseen, flags, limit, heartbeat)
  local due, others = earliest(ctx, queue)
  if unseen then due, others = ctx.now, ctx.now end
  queues.set_due(ctx, queue, due, flags, limit, heartbeat)
  return free and due or others
end

return M
