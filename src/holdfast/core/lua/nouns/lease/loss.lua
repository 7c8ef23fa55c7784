-- loss: a lease ended without an outcome. That is noticed and paid for; then the job is handed out again, or fails.
local record = require("base.record")
local root = require("base.root")
local admission = require("nouns.job.admission")
local ending = require("nouns.job.ending")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local state = require("nouns.job.state")
local stats = require("nouns.queue.stats")
local M = {}

local NOTICED = record.FLAG.NOTICED

-- First look at a lost lease: the loss is counted, and the holder gets a message.
function M.count(ctx, queue, jid, r)
  if ctx.workers then ctx.workers.drop(ctx, r.worker, jid) end
  if ctx.events.tracked then ctx.events.tracked(ctx, "stalled", jid, r) end
  r.flags = record.with(r.flags, NOTICED)
  stats.count(ctx, queue, "retries")
  ctx.events.lock_lost(ctx, jid, r.worker)
end

-- The same, with a line in the history, because nothing more is known of it.
function M.notice(ctx, queue, jid, r)
  history.add(ctx, jid, r, history.TIMED_OUT)
  M.count(ctx, queue, jid, r)
end

-- A job whose lease was lost fails, for nothing is left to pay with.
function M.fail(ctx, queue, jid, r, group, message)
  lease.remove(ctx, queue, jid, r)
  ending.fail_unreported(ctx, queue, jid, r, group, message, r.worker)
end

-- The grace period is over, so the loss is paid for. True if the job is to be handed out
-- again; otherwise it failed.
local function redeliver(ctx, queue, jid, r)
  local group, message = admission.after_loss(ctx, queue, jid, r, history.LOST, "")
  if not message then return true end
  M.fail(ctx, queue, jid, r, group, message)
  return false
end

-- Looks at leases that ended, at most `most` where that door has a bound. Returns the jobs
-- to hand out again at once, at most `want`, as three lists: jids, records, and the times at which
-- their leases, or the grace periods, ended; and how many leases it looked at.
function M.collect(ctx, queue, want, most)
  local bound = ctx.bounds.lost and math.min(ctx.bounds.lost, math.floor(most)) or want
  local lost = call("ZRANGE", queue.leases, "-inf", ctx.now, "BYSCORE", "LIMIT", 0, bound, "WITHSCORES")
  local jids, records, ends, grace = {}, {}, {}, root.settings(ctx).grace
  for i = 1, #lost, 2 do
    local jid = lost[i]
    local r = job.read(ctx, jid)
    if not r or r.state ~= state.RUNNING then
      call("ZREM", queue.leases, jid) -- an orphan: its job is gone
    elseif not record.has(r.flags, NOTICED) and grace > 0 then
      M.notice(ctx, queue, jid, r)
      job.write(ctx, jid, r)
      call("ZADD", queue.leases, ctx.now + grace, jid)
    elseif #jids < want or admission.is_last_loss(ctx, queue, jid, r) then
      -- Without grace, that protocol reports a loss again.
      local unreported = not record.has(r.flags, NOTICED) or ctx.bounds.repeats_loss and grace <= 0
      if unreported then M.notice(ctx, queue, jid, r) end
      if redeliver(ctx, queue, jid, r) then
        local n = #jids + 1
        jids[n], records[n], ends[n] = jid, r, tonumber(lost[i + 1])
      end
    end
  end
  return jids, records, ends, #lost / 2
end

return M
