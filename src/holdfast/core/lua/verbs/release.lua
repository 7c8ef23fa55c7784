-- release: leases are given up before their jobs have ended, by the process that supervises
-- their holders, with the reason:
--
-- `preempted`: the worker had to stop. `crashed`: the process died. `lost`: it ended, and the
-- cause is unknown. `timed-out`: the job took longer than it may. `unknown`: the worker does not
-- know its code. An older verb, `expire`, only ends them, without grace.
local keys = require("base.keys")
local record = require("base.record")
local admission = require("nouns.job.admission")
local ending = require("nouns.job.ending")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local loss = require("nouns.lease.loss")
local queues = require("nouns.queue.queue")
local state = require("nouns.job.state")
local unknown = require("nouns.failure.unknown")
local retry = require("verbs.retry")
local M = {}

M.WIDTH = 3 -- (worker, jid, token)

-- It costs nothing: the job is the next one of its priority again, with all it had left.
local function preempted(ctx, jid, r, cause)
  local queue = lease.release(ctx, jid, r)
  history.add(ctx, jid, r, history.PREEMPTED, "", cause)
  call("HINCRBY", ctx.keys.extra .. jid, "c", 1)
  state.move(r, state.WAITING)
  call("ZADD", queue.waiting, ctx.order.first_again(r, jid))
  ctx.record.ready(r, ctx.now)
  queues.ready_again(ctx, queue)
  job.write(ctx, jid, r)
end

-- It is paid for, and the job is handed out again before anything that waits. The line of
-- what was paid for is the whole story, unless the loss was noticed before its cause was known.
local function lose(ctx, what, jid, r, cause)
  local queue = keys.of_queue(ctx, r.queue)
  if not record.has(r.flags, record.FLAG.NOTICED) then loss.count(ctx, queue, jid, r) end
  local group, message = admission.after_loss(ctx, queue, jid, r, what, cause)
  if message then return loss.fail(ctx, queue, jid, r, group, message) end
  lease.release(ctx, jid, r)
  state.move(r, state.WAITING)
  local first, idle = queues.take_sequence(ctx, queue, 1)
  call("ZADD", queue.waiting, ctx.order.urgent(r, first + 1, jid))
  ctx.record.ready(r, ctx.now)
  if idle then queues.signal(queue) end
  job.write(ctx, jid, r)
end

local function timed_out(ctx, jid, r, cause)
  local message = format("took longer than its timeout of %s (worker %s, attempt %d)", cause, r.worker, r.attempts)
  retry.one(ctx, nil, r.queue .. "-TimedOut", message, jid, r, "")
end

-- It costs nothing, but a job that stays unknown for too long fails.
local function not_known(ctx, jid, r, cause, group)
  local queue = lease.release(ctx, jid, r)
  local pause, waited = unknown.note(ctx, jid, r, cause)
  if not pause then
    local message = format("%s; no worker knew it for %.0f s", cause, waited / 1000)
    return ending.fail(ctx, queue, jid, r, group, message, r.worker)
  end
  history.add(ctx, jid, r, history.UNKNOWN, "", cause)
  job.place(ctx, queue, jid, r, pause)
  job.write(ctx, jid, r)
end

-- The next pop pays for it, and hands the job out again before anything that waits.
function M.expire(ctx, jid, r)
  local queue = keys.of_queue(ctx, r.queue)
  if not record.has(r.flags, record.FLAG.NOTICED) then loss.notice(ctx, queue, jid, r) end
  job.write(ctx, jid, r)
  call("ZADD", queue.leases, ctx.now, jid)
  queues.lower_due(ctx, queue, ctx.now)
  queues.signal_if_idle(queue)
end

M.HOW = {
  preempted = preempted,
  crashed = function(ctx, jid, r, cause) lose(ctx, history.CRASHED, jid, r, cause) end,
  lost = function(ctx, jid, r) lose(ctx, history.LOST, jid, r, "") end,
  ["timed-out"] = timed_out,
  unknown = not_known,
}

-- `args[first … last]` are (worker, jid, token); those that are not held are left alone. `release_one`
-- is `expire` or one of HOW, `cause` what is known of it, `group` the one in which an unknown job
-- fails. Returns how many leases were given back.
function M.run(ctx, release_one, cause, group, args, first, last)
  local count = 0
  for i = first, last, M.WIDTH do
    local jid = args[i + 1]
    local r = lease.held(ctx, args[i], jid, tonumber(args[i + 2]))
    if r then
      release_one(ctx, jid, r, cause, group)
      count = count + 1
    end
  end
  return count
end

return M
