-- lease: the right to run one job until a moment.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local refuse = require("base.refuse")
local root = require("base.root")
local allowance = require("nouns.allowance")
local failure = require("nouns.failure")
local history = require("nouns.history")
local job = require("nouns.job")
local state = require("nouns.state")
local stats = require("nouns.stats")
local M = {}

local NOTICED = record.FLAG.NOTICED

local call
late.bind(function() call = redis.call end)

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
function M.held(at, worker, jid, token)
  local r = job.read(at, jid)
  if r and M.is_held(r, worker, token) then return r end
  return nil, M.refusal(jid, r), r
end

-- Ends a lease with an outcome.
function M.release(at, jid, r)
  local queue = keys.of_queue(at, r.queue)
  M.let_go(at, queue, jid, r)
  r.flags = record.without(r.flags, NOTICED)
  return queue
end

-- The lease and the slots go; the record is the caller's business.
function M.let_go(at, queue, jid, r)
  call("ZREM", queue.leases, jid) -- before the throttle counts its slots
  if at.workers then at.workers.drop(at, r.worker, jid) end
  at.throttles.release(at, queue, jid, r)
end

-- Takes a job out of wherever it is, to be put anew or deleted.
function M.evict(at, jid, r)
  if r.state == state.RUNNING then
    M.release(at, jid, r)
  elseif r.state == state.FAILED then
    failure.remove(at, jid, r)
  elseif r.state == state.COMPLETE then
    at.completed.take_out(at, jid)
  else
    job.withdraw(at, jid, r)
  end
end

-- First look at a lost lease: the loss is counted, and the holder hears of it.
function M.count_lost(at, queue, jid, r)
  if at.workers then at.workers.drop(at, r.worker, jid) end
  if at.events.tracked then at.events.tracked(at, "stalled", jid, r) end
  r.flags = record.with(r.flags, NOTICED)
  stats.count(at, queue, "retries")
  at.events.lock_lost(at, jid, r.worker)
end

-- The same, with a line in the history, because nothing more is known of it.
function M.notice(at, queue, jid, r)
  history.tell(at, jid, r, history.TIMED_OUT)
  M.count_lost(at, queue, jid, r)
end

-- A job whose lease was lost fails, for nothing is left to pay with.
function M.fail_lost(at, queue, jid, r, group, message)
  local holder = r.worker
  M.let_go(at, queue, jid, r)
  if at.events.tracked then at.events.tracked(at, "failed", jid, r) end
  if at.events.failed then at.events.failed(at, jid, group, message, holder) end
  r.worker = "" -- the history must not show that the former holder failed it
  failure.add(at, queue, jid, r, history.FAILED, group, message, "")
end

-- The grace period is over, so the loss is paid for. True if the job is to be handed out
-- again; otherwise it failed.
local function redeliver(at, queue, jid, r)
  local group, message
  if at.budgets then
    group, message = at.budgets.pay(at, queue, jid, r, history.LOST, "")
  else
    group, message = "failed-retries-" .. queue.name, allowance.pay(queue, r)
  end
  if not message then return true end
  M.fail_lost(at, queue, jid, r, group, message)
  return false
end

-- Whether another loss is one too many.
local function is_last(at, queue, jid, r)
  if at.budgets then return at.budgets.is_spent(at, queue, jid, r) end
  return r.remaining <= 0
end

-- Looks at leases that ended, at most `most` where that door has a bound. Returns the jobs
-- to hand out again at once, at most `want`, as two lists, jids and records; and how many
-- leases it looked at.
function M.collect_lost(at, queue, want, most)
  local bound = at.bounds.lost and math.min(at.bounds.lost, math.floor(most)) or want
  local lost = call("ZRANGE", queue.leases, "-inf", at.now, "BYSCORE", "LIMIT", 0, bound)
  local jids, records, grace = {}, {}, root.settings(at).grace
  for i = 1, #lost do
    local jid = lost[i]
    local r = job.read(at, jid)
    if not r or r.state ~= state.RUNNING then
      call("ZREM", queue.leases, jid) -- an orphan: its job is gone
    elseif not record.has(r.flags, NOTICED) and grace > 0 then
      M.notice(at, queue, jid, r)
      job.write(at, jid, r)
      call("ZADD", queue.leases, at.now + grace, jid)
    elseif #jids < want or is_last(at, queue, jid, r) then
      -- Without grace, that protocol tells of a loss even if it told of it before.
      local untold = not record.has(r.flags, NOTICED) or at.bounds.retell and grace <= 0
      if untold then M.notice(at, queue, jid, r) end
      if redeliver(at, queue, jid, r) then
        jids[#jids + 1], records[#records + 1] = jid, r
      end
    end
  end
  return jids, records, #lost
end

return M
