-- lease: the right to run one job until a moment.
local keys = require("base.keys")
local record = require("base.record")
local refuse = require("base.refuse")
local failure = require("nouns.failure.failure")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local NOTICED = record.FLAG.NOTICED

-- Whether this worker holds the job under this token.
function M.is_held(r, worker, token)
  return r.state == state.RUNNING and r.token == token and r.worker == worker
end

-- Why it does not, as the reply to one job of a batch.
function M.refusal(jid, r)
  if not r then return refuse.job("JOB_NOT_FOUND", jid) end
  return refuse.job("LEASE_LOST", ("%s is %s, token %.0f"):format(jid, state.NAME[r.state], r.token))
end

-- The record of a held lease, or nil and the refusal (and the record, if any).
function M.held(ctx, worker, jid, token)
  local r = job.read(ctx, jid)
  if r and M.is_held(r, worker, token) then return r end
  return nil, M.refusal(jid, r), r
end

-- Ends a lease with an outcome.
function M.release(ctx, jid, r)
  local queue = keys.of_queue(ctx, r.queue)
  M.remove(ctx, queue, jid, r)
  r.flags = record.without(r.flags, NOTICED)
  return queue
end

-- The lease and the slots go; the record is the caller's business.
function M.remove(ctx, queue, jid, r)
  call("ZREM", queue.leases, jid) -- before the throttle counts its slots
  if ctx.workers then ctx.workers.drop(ctx, r.worker, jid) end
  ctx.throttles.release(ctx, queue, jid, r)
end

-- Removes a job from the set that it is in, to be put again or deleted.
function M.evict(ctx, jid, r)
  if r.state == state.RUNNING then
    M.release(ctx, jid, r)
  elseif r.state == state.FAILED then
    failure.remove(ctx, jid, r)
  elseif r.state == state.COMPLETE then
    ctx.completed.remove(ctx, jid)
    r.flags = record.without(r.flags, record.FLAG.FLOW) -- its end counted: another one does not
  else
    job.remove(ctx, jid, r)
  end
end

return M
