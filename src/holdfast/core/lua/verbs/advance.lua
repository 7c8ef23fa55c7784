-- advance: a job is done here and continues in the next queue, under the same jid and in the
-- same life. Jobs that depend on it keep waiting.
local batch = require("base.batch")
local keys = require("base.keys")
local failure = require("nouns.failure.failure")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local placement = require("nouns.job.placement")
local queues = require("nouns.queue.queue")
local stats = require("nouns.queue.stats")
local M = {}

-- Why a lease cannot be settled so: the job moved on before, or it is lost.
function M.refusal(ctx, jid, r, worker, token)
  if r and history.ending(ctx, jid, r, worker, token) == history.ADVANCED then return "again" end
  history.refused(ctx, jid, r, worker, token, "complete")
  return lease.refusal(jid, r)
end

-- One line, or where that is none two: the job is done, and put.
local function add_lines(ctx, jid, r, name)
  if not ctx.omitted_lines[history.ADVANCED] then return history.add(ctx, jid, r, history.ADVANCED, name) end
  history.add(ctx, jid, r, history.DONE)
  history.add(ctx, jid, r, history.PUT, name)
end

-- Ends a lease that is held; the job is in the next queue, but has no place there yet.
function M.leave(ctx, next_queue, jid, r, data)
  queues.know(ctx, next_queue)
  local queue = lease.release(ctx, jid, r)
  add_lines(ctx, jid, r, next_queue.name)
  stats.ran(ctx, queue, pack("<d", ctx.now - r.popped))
  failure.clear(ctx, jid, r)
  if ctx.events.tracked then ctx.events.tracked(ctx, "completed", jid, r) end
  if ctx.events.advanced then ctx.events.advanced(ctx, jid, next_queue.name, queue.name) end
  r.queue, r.queued, r.remaining, r.losses = next_queue.name, ctx.now, r.retries, 0
  ctx.record.begin(r, ctx.now)
  job.set_body(ctx, jid, r, data)
end

local function one(ctx, worker, next_queue, delay, jid, token, data)
  local r, _, other = lease.held(ctx, worker, jid, token)
  if not r then return M.refusal(ctx, jid, other, worker, token) end
  M.leave(ctx, next_queue, jid, r, data)
  placement.continue(ctx, next_queue, jid, r, delay)
end

-- `args[first … last]` are (jid, token, data or ""); `delay` is in ms. Returns how
-- many moved on, then (jid, code) of the others.
function M.run(ctx, worker, name, delay, args, first, last)
  local next_queue = keys.of_queue(ctx, name)
  return batch.settle(args, first, last, function(jid, token, data)
    return one(ctx, worker, next_queue, delay, jid, token, data)
  end)
end

return M
