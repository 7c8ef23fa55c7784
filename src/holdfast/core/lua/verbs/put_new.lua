-- put_new: jobs that are all new come into a queue with their options: a few commands a call,
-- not a job, wherever the store has such commands.
--
-- All is read and made up before the first of it is written. `plan` gathers what is to be
-- written: `sets` (key: score and member in turns), `pending` (throttle: jids), `tags`,
-- `parents` (see `links`); `room` keeps how many slots were found free, `limited` as in a grant.
local record = require("base.record")
local admission = require("nouns.job.admission")
local dependency = require("nouns.dependency.dependency")
local event = require("nouns.event.event")
local extra = require("nouns.job.extra")
local history = require("nouns.job.history")
local links = require("nouns.dependency.dependency_links")
local options = require("nouns.job.options")
local queues = require("nouns.queue.queue")
local state = require("nouns.job.state")
local tag = require("nouns.job.tag")
local tally = require("nouns.queue.tally")
local waiting = require("nouns.throttle.throttle_waiting")
local M = {}

local FLAG, SPILL = record.FLAG, record.SPILL
local NOTHING = {}

-- Whether these jobs can go this way: each named once, none with a long body, none that has to be unique, and none
-- that waits for another of them.
local function are_simple(jobs)
  if jobs.unique then return false end
  if #jobs == 1 and not jobs.depend then return #jobs[1].data <= SPILL end
  local named = {}
  for i = 1, #jobs do
    local jid = jobs[i].jid
    if named[jid] or #jobs[i].data > SPILL then return false end
    named[jid] = true
  end
  for i = 1, jobs.depend and #jobs or 0 do
    local parents = jobs[i].opts.depends or NOTHING
    for k = 1, #parents do
      if named[parents[k]] then return false end
    end
  end
  return true
end

local function are_known(ctx, jobs)
  if #jobs == 1 then return call("EXISTS", ctx.keys.job .. jobs[1].jid) == 1 end
  local names = {}
  for i = 1, #jobs do names[i] = ctx.keys.job .. jobs[i].jid end
  return call("EXISTS", unpack_(names)) > 0
end

-- What a job will be, but for its place.
local function outline(ctx, target, one, plan)
  local jid, opts = one.jid, one.opts
  local r = {
    state = state.WAITING, flags = ctx.events.flags(ctx, jid), attempts = 0, created = ctx.now,
    queue = target.queue.name, token = 0, worker = "", fields = {}, ids = false,
  }
  if target.losses then r.flags = r.flags + FLAG.BUDGETED end
  if one.is_counted then r.flags = r.flags + FLAG.FLOW end
  if opts or target.losses then options.set(ctx, jid, r, opts or NOTHING, target.losses) end
  if not opts then return r end
  if opts.throttles then r.ids = ctx.throttles.assign(ctx, target.queue, jid, r, opts.throttles) end
  if opts.tags then tag.plan(ctx, jid, r, opts.tags, plan.tags) end
  if opts.depends then links.plan(ctx, jid, r, opts.depends, plan.parents) end
  if opts.edges then links.plan_edges(ctx, jid, r, opts.edges, plan.sets) end
  if opts.is_parent then r.flags = record.with(r.flags, FLAG.DEPENDENTS) end
  return r
end

local function append(lists, name, score, jid)
  local list = lists[name] or {}
  lists[name] = list
  local n = #list
  list[n + 1], list[n + 2] = score, jid
end

-- Where a job goes, noted in `plan`. `position` is that of the last one that is ready;
-- returns that of this one, or the same.
local function place(ctx, target, jid, r, plan, position)
  local reason, full = admission.at_arrival(ctx, target, jid, r, plan)
  if reason == state.DEPENDS then
    if target.delay > 0 then extra.set(ctx, jid, r, "w", ("%.17g"):format(ctx.now + target.delay)) end
    append(plan.sets, target.queue.depends, ctx.now, jid)
  elseif reason == state.SCHEDULED then
    append(plan.sets, target.queue.scheduled, ctx.now + target.delay, jid)
  elseif reason == state.THROTTLED then
    history.add(ctx, jid, r, history.THROTTLED, target.queue.name)
    plan.pending[full] = plan.pending[full] or {}
    insert(plan.pending[full], jid)
  else
    append(plan.sets, target.queue.waiting, ctx.order.entry(position + 1, target.priority, ctx.now, jid))
    return position + 1
  end
  r.state = reason
  return position
end

-- The records, as (key, record) pairs.
local function packed(ctx, target, jobs, rs)
  local sets, form, start, was, klass = {}, ctx.record, nil, NOTHING, nil
  for i = 1, #jobs do
    local r, one = rs[i], jobs[i]
    if r.flags ~= was.flags or r.state ~= was.state or one.klass ~= klass then
      was, klass = r, one.klass
      local head = form.fresh(r.state, r.flags, target.priority, target.retries, ctx.now, target.queue.name)
      start = form.with_klass(head, klass)
    end
    sets[2 * i - 1], sets[2 * i] = ctx.keys.job .. one.jid, start .. one.data
  end
  return sets
end

-- All that goes with the records.
local function write(ctx, target, jobs, rs, plan)
  for i = 1, #jobs do
    extra.flush(ctx, jobs[i].jid, rs[i])
    if record.has(rs[i].flags, FLAG.TRACKED) then ctx.events.tracked(ctx, "put", jobs[i].jid, rs[i]) end
    if ctx.watched then event.changed_job(ctx, jobs[i].jid, target.queue.name) end
  end
  for set, entries in pairs(plan.sets) do call("ZADD", set, unpack_(entries)) end
  for id, jids in pairs(plan.pending) do waiting.hold_back_new(ctx, target.queue, id, jids) end
  tag.enter_groups(ctx, plan.tags)
  links.join_all(ctx, plan.parents)
  if plan.sets[target.queue.scheduled] then queues.due_at(ctx, target.queue, ctx.now + target.delay) end
end

-- They find no place: they go, so that a repeat of the put does not get `again`.
local function undo(ctx, jobs, problem)
  local k = ctx.keys
  for i = 1, #jobs do
    local jid = jobs[i].jid
    call("UNLINK", k.job .. jid, k.extra .. jid, k.dependents .. jid)
  end
  error(problem)
end

-- How many numbers these jobs need at most: each that is ready at once needs one.
local function needed(target, rs)
  if target.delay > 0 then return 0 end
  local count = 0
  for i = 1, #rs do
    if not dependency.is_open(rs[i]) then count = count + 1 end
  end
  return count
end

-- Notes how many slots the queue has free. False if its waiting jobs are limited: then each job
-- is looked at by itself.
local function look_at_limit(ctx, queue, plan)
  local _, flags, limit = queues.control(queue)
  if queues.has_most(flags) then return false end
  plan.limited = queues.is_limited(flags)
  plan.room[queue.own] = ctx.throttles.room(ctx, queue, plan, limit, flags)
  return true
end

-- Sequence numbers from `position` on that no job needed are given back.
local function finish(ctx, target, jobs, rs, plan, position, taken)
  local queue, last = target.queue, position
  for i = 1, #jobs do last = place(ctx, target, jobs[i].jid, rs[i], plan, last) end
  local ready = last - position
  if ready < taken then queues.return_sequence(queue, taken - ready) end
  call("MSET", unpack_(packed(ctx, target, jobs, rs)))
  local done, problem = pcall(write, ctx, target, jobs, rs, plan)
  if not done then undo(ctx, jobs, problem) end
  if ready < #jobs then tally.count(ctx, queue, "later", #jobs - ready) end
  if ready > 0 and target.idle then queues.signal(queue) end
  return { #jobs }
end

-- `jobs` are those of `put.run_x`, whose opts may be nil. Returns as `put` does, or nil: then
-- nothing is written, and the jobs have to be looked at one by one.
function M.run(ctx, target, jobs)
  local queue = target.queue
  if #jobs == 0 or not are_simple(jobs) or are_known(ctx, jobs) then return nil end
  local parents, rs = jobs.depend and links.open(ctx, jobs) or NOTHING, {}
  local plan = { sets = {}, pending = {}, tags = {}, parents = parents, room = {}, limited = false }
  for i = 1, #jobs do rs[i] = outline(ctx, target, jobs[i], plan) end
  local taken = needed(target, rs)
  target.first, target.idle, target.limited = queues.enter(ctx, queue, taken)
  if target.limited and not look_at_limit(ctx, queue, plan) then
    if taken > 0 then queues.return_sequence(queue, taken) end
    return nil
  end
  return finish(ctx, target, jobs, rs, plan, target.first, taken)
end

return M
