-- admission: the one place where "may this job start now?" is asked.
--
-- A rule finds a reason why not. The rules are asked on each way on which jobs come to wait or to run:
--
-- * `opens`, `open`: a queue hands out jobs: its pause. Asked by `verbs.pop`.
-- * `room`: how many of them: its limit. Asked by `verbs.pop`.
-- * `at_grant`: this job starts: its deadline, what its worker has to understand, its throttles. Asked by
--   `nouns.lease.grant`.
-- * `after_return`: the same of a job whose lease was lost, which has its slots and cannot come too late.
-- * `after_loss`, `is_last_loss`: it starts again after its lease was lost: its budget. Asked by `nouns.lease.loss` and
--   `verbs.release`.
-- * `at_arrival`: it is ready as soon as it is put or moved: its parents, its delay, its throttles. Asked by
--   `nouns.job.placement` and `verbs.put_new`.
-- * `when_due`: it is ready now that its delay is over: its deadline. Asked by `nouns.lease.timer`.
--
-- A reason is named by the state in which the job waits, or ends, instead: no reason is nil. Jobs that become ready in
-- any other way (a retry, an unfail, a dependent that is released, or a job that continues in another queue and has no
-- parents there) are asked when they are popped.
--
-- The straight ways ask nothing: a plain job (`record.is_plain`) in a queue whose control record has no flags meets
-- no rule. These are `verbs.put`, which sees the bit LIMITED, and `nouns.lease.grant`, which sees `grant.straight`. So
-- a rule is about jobs with a flag, or about queues with one. What `explain` shows of the rules is in
-- `verbs.surroundings`.
local record = require("base.record")
local dependency = require("nouns.dependency.dependency")
local expiry = require("nouns.lease.expiry")
local pauses = require("nouns.queue.pause")
local queue_bounds = require("nouns.queue.queue_bounds")
local options = require("nouns.job.options")
local queues = require("nouns.queue.queue")
local unknown = require("nouns.failure.unknown")
local state = require("nouns.job.state")
local M = {}

local EXPIRING, OPTIONS = record.FLAG.EXPIRING, record.FLAG.OPTIONS
local EXPIRED_WEIGHT = 2 -- a job that came too late takes twice as long as one that is granted
local NEWER_WEIGHT = 3 -- so does one that its worker does not understand
local has = record.has
local NONE = {}

-- When a queue that hands out nothing begins to, by the flags of its control record (NEVER: when it is resumed); nil
-- for any other queue.
function M.opens(queue, flags)
  if queues.is_paused(flags) then return pauses.ends(queue) end
end

-- The same for a pop, which ends a pause that is over. Returns the flags that are left, too.
function M.open(ctx, queue, flags)
  local when = M.opens(queue, flags)
  if not when or when > ctx.now then return when, flags end
  return nil, pauses.over(ctx, queue, flags)
end

-- How many jobs of a queue may start, by its limit and flags (nil: as many as there are); and notes in the grant
-- whether its plain jobs may start without any further question, with the time of the grant as their token. Most
-- queues have no limit, and their throttle is not looked at, but where any throttle may bind any job (`by_round`).
function M.room(ctx, queue, grant, limit, flags)
  local room
  if grant.limited or ctx.throttles.by_round then room = ctx.throttles.room(ctx, queue, grant, limit, flags) end
  grant.straight = not grant.limited and grant.granted < ctx.now
  return room
end

-- Why a job that was popped does not start: it failed, or it is held back. Else it has its slots. Throttles come
-- last, because this takes their slots.
function M.at_grant(ctx, queue, jid, r, grant)
  if has(r.flags, EXPIRING) and expiry.is_over(ctx, jid, r) then
    grant.spent = grant.spent + EXPIRED_WEIGHT
    expiry.fail(ctx, queue, jid, r)
    return state.FAILED
  end
  if M.after_return(ctx, jid, r, grant) then return state.SCHEDULED end
  if ctx.throttles.take(ctx, queue, jid, r, grant) then return state.THROTTLED end
end

-- Why a job whose lease was lost does not start again now: it waits for a worker of a newer release.
function M.after_return(ctx, jid, r, grant)
  if not has(r.flags, OPTIONS) then return nil end
  local needs = options.of(ctx, jid, r).needs
  if not needs or needs <= grant.level then return nil end
  grant.spent = grant.spent + NEWER_WEIGHT
  local due = unknown.hold_back(ctx, jid, r, grant.worker, needs, grant.level)
  if due < grant.later then grant.later = due end
  return state.SCHEDULED
end

-- A lost attempt is paid for: `what` is its line in the history, CRASHED or LOST, `cause` what is known of a crash.
-- Returns nothing if the job may start again, else the group and the message with which it has to fail.
function M.after_loss(ctx, queue, jid, r, what, cause)
  if ctx.budgets then return ctx.budgets.pay(ctx, queue, jid, r, what, cause) end
  local message = queue_bounds.pay(queue, r)
  if message then return "failed-retries-" .. queue.name, message end
end

-- Whether the next loss is one too many.
function M.is_last_loss(ctx, queue, jid, r)
  if ctx.budgets then return ctx.budgets.is_spent(ctx, queue, jid, r) end
  return r.remaining <= 0
end

-- The first full throttle of a job that is put with others, of which `plan` keeps how many slots were found free.
local function full_in_plan(ctx, queue, r, plan)
  local ids, room = r.ids or NONE, plan.room
  for i = 1, #ids do
    room[ids[i]] = room[ids[i]] or ctx.throttles.free(ctx, ids[i])
    if room[ids[i]] < 1 then return ids[i] end
  end
  return room[queue.own] and room[queue.own] < 1 and queue.own or nil
end

-- Why a job that is put or moved is not ready at once, and the throttle that is full. For `target` see `verbs.put`,
-- for `plan` (nil: it comes alone) `verbs.put_new`.
function M.at_arrival(ctx, target, jid, r, plan)
  if dependency.is_open(r) then return state.DEPENDS end
  if target.delay > 0 then return state.SCHEDULED end
  local full
  if not plan then
    full = ctx.throttles.is_full(ctx, target.queue, jid, r, target.limited)
  elseif target.limited or r.ids then
    full = full_in_plan(ctx, target.queue, r, plan)
  end
  if full then return state.THROTTLED, full end
end

-- Why a job whose delay is over is not ready: it failed.
function M.when_due(ctx, queue, jid, r)
  if not has(r.flags, EXPIRING) or not expiry.is_over(ctx, jid, r) then return nil end
  state.move(r, state.WAITING)
  expiry.fail(ctx, queue, jid, r)
  return state.FAILED
end

return M
