-- ending: the one place where it is announced that a job has ended: it is complete, it failed, or it was cancelled.
--
-- What follows from every end is in `announce`, and what follows from one kind alone is in the function of that
-- kind. A plain job (`record.is_plain`) that is complete needs neither, so it takes the straight way of
-- `verbs.complete`; what follows for such jobs, too, is in `write_one` and `write_many`. Whatever else an end shall
-- have begins in one of these places.
--
-- No end is a retry, or a job that continues in another queue: then its lease alone has ended, which gives back the
-- slots of throttles (`lease.release`), and jobs that depend on it keep waiting.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local dependency = require("nouns.dependency.dependency")
local dependents = require("nouns.dependency.dependents")
local handover = require("nouns.dependency.handover")
local event = require("nouns.event.event")
local failure = require("nouns.failure.failure")
local flows = require("nouns.flow.flow")
local members = require("nouns.flow.members")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local results = require("nouns.job.result")
local retention = require("nouns.job.retention")
local state = require("nouns.job.state")
local stats = require("nouns.queue.stats")
local tag = require("nouns.job.tag")
local tally = require("nouns.queue.tally")
local M = {}

local FLAG = record.FLAG
local has = record.has

-- A job is complete that skips what takes its result: see `handover.skips`.
local function as_skipped(why) return { group = "skipped", message = why, skipped = why, is_cancelled = true } end

-- A member of a large group has ended: see `announce`.
local function count(ctx, jid, r, ended)
  local group = members.read(ctx, members.flow_of(jid))
  if not group then return end -- forgotten
  local why = r.state == state.COMPLETE and handover.skips(ended.result)
  if r.state == state.COMPLETE and not why then
    members.completed(ctx, group, jid, ended.result)
    return M.settle_group(ctx, group)
  end
  if why then ended = as_skipped(why) end
  local enter = ended.is_cancelled and members.cancelled or members.failed
  enter(ctx, group, jid, handover.outcome(ended))
  M.settle_group(ctx, group, jid, ended)
end

local MOST, STEP = 512, 100 -- jobs that follow one end in the same call, and later ones

-- The others from the one at `first` on follow in later calls.
local function set_apart(ctx, others, first)
  local packed = {}
  for i = first, #others do packed[#packed + 1] = mp_pack(others[i]) end
  call("RPUSH", ctx.keys.following, unpack_(packed))
  root.set_flag(ctx, root.RELEASING, true)
end

-- What has to become of jobs that waited for one that ended: see `dependents`. One call does that for a limited number.
local function follow(ctx, others)
  for i = 1, #others do
    local one = others[i]
    if ctx.followed == MOST then return set_apart(ctx, others, i) end
    ctx.followed = ctx.followed + 1
    if one.why then
      M.skip(ctx, one.jid, one.why)
    elseif one.result then
      M.complete_waiting(ctx, one.jid, one.result, one.keep)
    else
      M.fail_for_parent(ctx, one.jid, one.problem)
    end
  end
end

-- What follows from every end. Write the record afterwards. `r.state` is the state in which the job ended, of a
-- cancelled one that in which it was. `ended` is what the end was: the result of a job that is complete (nil: none), or
-- the group and the message of any other, whether it was cancelled, and why it was skipped, if it was.
local function announce(ctx, jid, r, ended)
  if has(r.flags, FLAG.FLOW) then count(ctx, jid, r, ended) end
  if has(r.flags, FLAG.AWAITED) then
    r.flags = r.flags - FLAG.AWAITED
    ctx.events.ended(ctx, jid)
  end
  if not has(r.flags, FLAG.DEPENDENTS) then return end
  local why = ended.skipped or r.state == state.COMPLETE and handover.skips(ended.result)
  if why then
    follow(ctx, dependents.ended(ctx, jid, r, as_skipped(why)))
    return follow(ctx, dependents.released(ctx, jid, r, { result = handover.skipping(why) }))
  end
  local find = r.state == state.COMPLETE and dependents.released or dependents.ended
  follow(ctx, find(ctx, jid, r, ended))
end

-- A job that waits fails, because a parent did not end as it needs it. It waits for its parents still: if all of them
-- are complete at last, it is ready.
function M.fail_for_parent(ctx, jid, message)
  local r = job.read(ctx, jid)
  if not r or r.state ~= state.DEPENDS then return end
  local queue = keys.of_queue(ctx, r.queue)
  call("ZREM", queue.depends, jid)
  local group = queue.name .. handover.GROUP
  if ctx.events.tracked then ctx.events.tracked(ctx, "failed", jid, r) end
  if ctx.events.failed then ctx.events.failed(ctx, jid, group, message, "") end
  failure.add(ctx, queue, jid, r, history.FAILED, group, message, "")
  announce(ctx, jid, r, { group = group, message = message })
  job.write(ctx, jid, r)
end

-- A job that waits is complete without a run, because those that it waits for have ended. Its result is kept for `keep`
-- ms. One that failed because of them is complete, too.
function M.complete_waiting(ctx, jid, result, keep)
  local r = job.read(ctx, jid)
  if not r or r.state ~= state.DEPENDS and r.state ~= state.FAILED then return false end
  local queue = keys.of_queue(ctx, r.queue)
  if r.state == state.DEPENDS then
    call("ZREM", queue.depends, jid)
  else
    failure.remove(ctx, jid, r)
    failure.clear(ctx, jid, r)
  end
  if r.attempts == 0 then r.attempts, r.token, r.popped, r.worker = 1, ctx.now, ctx.now, "" end
  state.move(r, state.COMPLETE)
  r.ended, r.remaining = ctx.now, r.retries
  r.flags = record.without(r.flags, FLAG.DEPENDING)
  if has(r.flags, FLAG.HISTORY) then history.note(ctx, jid, r, history.DONE, queue.name) end
  if keep > 0 then results.keep(ctx, jid, result, keep) end
  announce(ctx, jid, r, { result = result })
  if ctx.events.tracked then ctx.events.tracked(ctx, "completed", jid, r) end
  if ctx.events.completed then ctx.events.completed(ctx, jid, queue.name) end
  job.write(ctx, jid, r) -- before the oldest ones are looked at, or one that is not kept goes
  retention.trim(ctx, ctx.completed.add(ctx, jid, true), 1, jid)
  return true
end

-- A member has ended, or the group was closed: the job of the group ends, if that decides it. `ended` is how `jid`
-- ended, if it is not complete.
function M.settle_group(ctx, group, jid, ended)
  local own = flows.jid(group.flow, 0)
  if members.are_over(group) then
    local all, problem = members.gathered(ctx, group)
    if problem then return M.fail_for_parent(ctx, own, problem) end
    if M.complete_waiting(ctx, own, all, root.settings(ctx).result_keep) then members.finish(ctx, group) end
    return
  end
  if not ended or group.policy == dependency.RUN then return end
  if ended.skipped then return M.skip(ctx, own, ended.skipped) end
  local is_decided = ended.is_cancelled or group.policy == dependency.FAIL
  if is_decided then M.fail_for_parent(ctx, own, handover.reason(jid, ended)) end
end

-- Jobs of earlier calls are released; those that have to fail instead, fail.
function M.continue(ctx)
  follow(ctx, dependents.continue(ctx))
  local packed, others = call("LPOP", ctx.keys.following, STEP), {}
  if not packed then return end
  for i = 1, #packed do
    local one = mp_unpack(packed[i])
    -- Its parent may have become complete meanwhile.
    local is_meant = not one.problem or not one.parent or dependency.edge(ctx, one.jid, one.parent)
    if is_meant then others[#others + 1] = one end
  end
  follow(ctx, others)
  if call("EXISTS", ctx.keys.following) == 1 then root.set_flag(ctx, root.RELEASING, true) end
end

-- A job whose lease is held is complete; `data` may be "": unchanged, `result` too: none. Returns
-- its new record, the name of its queue,
-- the time of its pop, and whether it has keys beside its record. `write_one` or `write_many` comes next.
function M.complete(ctx, jid, r, data, result)
  local queue, popped = keys.of_queue(ctx, r.queue), r.popped
  state.move(r, state.COMPLETE)
  r.ended, r.remaining = ctx.now, r.retries
  r.flags = record.without(r.flags, FLAG.NOTICED)
  lease.remove(ctx, queue, jid, r)
  if has(r.flags, FLAG.HISTORY) then history.note(ctx, jid, r, history.DONE, queue.name) end
  failure.clear(ctx, jid, r)
  job.set_body(ctx, jid, r, data)
  announce(ctx, jid, r, { result = result })
  if ctx.events.tracked then ctx.events.tracked(ctx, "completed", jid, r) end
  if ctx.events.completed then ctx.events.completed(ctx, jid, queue.name) end
  return ctx.record.write(r), r.queue, popped, not record.is_plain(r.flags)
end

-- Writes a job that is complete, at `key`: `new` is its record, `popped` the time of its pop, `extra` whether it has
-- keys beside its record. `only` is its jid where one that is not kept at all has to be gone at once.
function M.write_one(ctx, queue, jid, key, new, popped, extra, only)
  call("SET", key, new)
  if ctx.watched then event.changed_job(ctx, jid, queue.name) end
  retention.trim(ctx, ctx.completed.add(ctx, jid, extra), 1, only)
  stats.ran(ctx, queue, pack("<d", ctx.now - popped))
end

-- The same for `n` jobs: `sets` has their keys and records, `done` their entries in the list of completed jobs,
-- `groups` their queues, each with the jids and how long they ran.
function M.write_many(ctx, groups, sets, done, n)
  for _, group in ipairs(groups) do
    call("ZREM", group.queue.leases, unpack_(group.jids))
    for k = 1, ctx.watched and #group.jids or 0 do event.changed_job(ctx, group.jids[k], group.name) end
  end
  call("MSET", unpack_(sets, 1, 2 * n))
  retention.trim(ctx, call("RPUSH", ctx.keys.completed, unpack_(done, 1, n)), n)
  for _, group in ipairs(groups) do
    stats.ran(ctx, group.queue, pack(rep("d", #group.ran), unpack_(group.ran)))
  end
end

-- What every failure has in common; `worker` is the one that reported it ("": none did).
local function failed(ctx, queue, jid, r, what, group, message, worker)
  failure.add(ctx, queue, jid, r, what, group, message, worker)
  announce(ctx, jid, r, { group = group, message = message })
  job.write(ctx, jid, r)
end

-- A job whose lease has ended fails, as its holder reported. Writes the record.
function M.fail(ctx, queue, jid, r, group, message, worker)
  if ctx.events.failed then ctx.events.failed(ctx, jid, group, message, worker) end
  if ctx.events.tracked then ctx.events.tracked(ctx, "failed", jid, r) end
  failed(ctx, queue, jid, r, history.FAILED, group, message, worker)
end

-- The same where its holder asked for one retry more than there were; `worker` is "" for a reason of ours.
function M.exhaust(ctx, queue, jid, r, group, message, worker)
  if ctx.events.exhausted then ctx.events.exhausted(ctx, jid, r) end
  failed(ctx, queue, jid, r, history.EXHAUSTED, group, message, worker)
end

-- A job that no worker holds fails, and none reported it: it was lost by `holder`, or came too late ("").
function M.fail_unreported(ctx, queue, jid, r, group, message, holder)
  if ctx.events.tracked then ctx.events.tracked(ctx, "failed", jid, r) end
  if ctx.events.failed then ctx.events.failed(ctx, jid, group, message, holder) end
  r.worker = "" -- the history must not show that a former holder failed it
  failed(ctx, queue, jid, r, history.FAILED, group, message, "")
end

-- A job that was put to work again goes back to where it failed; `noted` is what was kept of that. Writes the record.
function M.fail_again(ctx, queue, jid, r, noted)
  failure.restore(ctx, queue, jid, r, noted)
  announce(ctx, jid, r, { group = noted[failure.GROUP], message = noted[failure.MESSAGE] })
  job.write(ctx, jid, r)
end

-- A job that is not complete is deleted, in whatever state it is: `ended` is how that looks to others.
local function delete(ctx, jid, r, spared, who, ended)
  local running, queue = r.state == state.RUNNING, keys.of_queue(ctx, r.queue)
  local marked = ctx.cancelled and ctx.cancelled.note(ctx, jid, r, who)
  ctx.events.canceled(ctx, jid, r.queue, running and r.worker or "")
  lease.evict(ctx, jid, r)
  if not running then ctx.throttles.release(ctx, queue, jid, r) end
  if ctx.events.tracked then ctx.events.tracked(ctx, "canceled", jid, r) end
  announce(ctx, jid, r, ended)
  tag.forget(ctx, jid, r)
  dependency.leave(ctx, jid, r, spared)
  job.delete(ctx, jid, r)
  tally.count(ctx, queue, "cancelled", 1)
  if ctx.index and not running then ctx.index.left(ctx, queue) end
  return marked
end

-- A job that is not complete is deleted, in whatever state it is, by `who` ("": not given). Its parents forget it, but
-- those in the set `spared`, which are deleted too. Returns whether a mark of its end is kept.
function M.cancel(ctx, jid, r, spared, who)
  local message = who ~= "" and "by " .. who or "by a program"
  return delete(ctx, jid, r, spared, who, { group = "cancelled", message = message, is_cancelled = true })
end

-- A job that waits is not needed, because of a job that it waits for: it is deleted, and a mark of that is kept.
function M.skip(ctx, jid, why)
  local r = job.read(ctx, jid)
  if not r or r.state ~= state.DEPENDS and r.state ~= state.FAILED then return end
  r.flags = record.with(r.flags, FLAG.AWAITED)
  if delete(ctx, jid, r, {}, "its flow: skipped, " .. why, as_skipped(why)) then ctx.cancelled.sweep(ctx) end
end

return M
