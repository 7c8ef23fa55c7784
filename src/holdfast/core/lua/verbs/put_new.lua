-- put_new: jobs that nobody knows yet come into a queue with what is wished for them: so
-- many commands a call, not a job, wherever the store has such commands.
--
-- All is read and made up before the first of it is written.
local late = require("base.late")
local record = require("base.record")
local aside = require("nouns.aside")
local bounded = require("nouns.bounded")
local event = require("nouns.event")
local extra = require("nouns.extra")
local newcomer = require("nouns.newcomer")
local queues = require("nouns.queue")
local tag = require("nouns.tag")
local tally = require("nouns.tally")
local ties = require("nouns.ties")
local M = {}

local SPILL, TRACKED = record.SPILL, record.FLAG.TRACKED
local NOTHING = {}

local call, unpack_
late.bind(function() call, unpack_ = redis.call, unpack end)

-- Whether these jobs can go this way: each named once, none with a long body, and none
-- that waits for another of them.
local function are_simple(jobs)
  if #jobs == 1 and not jobs.depend then return #jobs[1].data <= SPILL end
  local named = {}
  for i = 1, #jobs do
    local jid = jobs[i].jid
    if named[jid] or #jobs[i].data > SPILL then return false end
    named[jid] = true
  end
  for i = 1, jobs.depend and #jobs or 0 do
    local parents = jobs[i].wish.depends or NOTHING
    for k = 1, #parents do
      if named[parents[k]] then return false end
    end
  end
  return true
end

local function are_known(at, jobs)
  if #jobs == 1 then return call("EXISTS", at.keys.job .. jobs[1].jid) == 1 end
  local names = {}
  for i = 1, #jobs do names[i] = at.keys.job .. jobs[i].jid end
  return call("EXISTS", unpack_(names)) > 0
end

-- The records, as (key, record) pairs.
local function packed(at, to, jobs, rs)
  local sets, pack, start, was, klass = {}, at.record, nil, NOTHING, nil
  for i = 1, #jobs do
    local r, one = rs[i], jobs[i]
    if r.flags ~= was.flags or r.state ~= was.state or one.klass ~= klass then
      was, klass = r, one.klass
      start = pack.with_klass(pack.fresh(r.state, r.flags, to.priority, to.retries, at.now, to.queue.name), klass)
    end
    sets[2 * i - 1], sets[2 * i] = at.keys.job .. one.jid, start .. one.data
  end
  return sets
end

-- All that goes with the records.
local function write(at, to, jobs, rs, plan)
  for i = 1, #jobs do
    extra.flush(at, jobs[i].jid, rs[i])
    if record.has(rs[i].flags, TRACKED) then at.events.tracked(at, "put", jobs[i].jid, rs[i]) end
    if at.watched then event.changed_job(at, jobs[i].jid, to.queue.name) end
  end
  for set, entries in pairs(plan.sets) do call("ZADD", set, unpack_(entries)) end
  for id, jids in pairs(plan.pending) do aside.park_new(at, to.queue, id, jids) end
  tag.enter_groups(at, plan.tags)
  ties.join_all(at, plan.parents)
  if plan.sets[to.queue.scheduled] then queues.due_at(at, to.queue, at.now + to.delay) end
end

-- They find no place: they go, so that a repeat of the put is not told `again`.
local function undo(at, jobs, problem)
  for i = 1, #jobs do call("UNLINK", at.keys.job .. jobs[i].jid, at.keys.extra .. jobs[i].jid) end
  error(problem)
end

-- How many numbers these jobs need at most: those that wait for nobody and nothing need one.
local function needed(to, rs)
  if to.delay > 0 then return 0 end
  local count = 0
  for i = 1, #rs do
    if not newcomer.waits(rs[i]) then count = count + 1 end
  end
  return count
end

-- Notes how many slots the queue has free. False if it may hold so many waiting jobs only:
-- then each is looked at by itself.
local function look_at_limit(at, queue, plan)
  local _, flags, limit = queues.control(queue)
  if bounded.has_most(flags) then return false end
  plan.room[queue.own] = at.throttles.room(at, queue, plan, limit, flags)
  return true
end

-- Numbers from `position` on that nobody needed are given back.
local function finish(at, to, jobs, rs, plan, position, taken)
  local queue, last = to.queue, position
  for i = 1, #jobs do last = newcomer.place(at, to, jobs[i].jid, rs[i], plan, last) end
  local ready = last - position
  if ready < taken then queues.give_back(queue, taken - ready) end
  call("MSET", unpack_(packed(at, to, jobs, rs)))
  local done, problem = pcall(write, at, to, jobs, rs, plan)
  if not done then undo(at, jobs, problem) end
  if ready < #jobs then tally.count(at, queue, "later", #jobs - ready) end
  if ready > 0 and to.idle then queues.signal(queue) end
  return { #jobs }
end

-- `jobs` are those of `put_x`, whose wish may be nil; `to` is as for `put_one`. Returns as `put`
-- does, or nil: then nothing is written, and the jobs have to be looked at one by one.
function M.run(at, to, jobs)
  local queue = to.queue
  if #jobs == 0 or not are_simple(jobs) or are_known(at, jobs) then return nil end
  local parents, rs = jobs.depend and ties.open(at, jobs) or NOTHING, {}
  local plan = { sets = {}, pending = {}, tags = {}, parents = parents, room = {} }
  for i = 1, #jobs do rs[i] = newcomer.outline(at, to, jobs[i], plan) end
  local taken = needed(to, rs)
  to.first, to.idle, to.limited = queues.enter(at, queue, taken)
  if to.limited and not look_at_limit(at, queue, plan) then
    if taken > 0 then queues.give_back(queue, taken) end
    return nil
  end
  return finish(at, to, jobs, rs, plan, to.first, taken)
end

return M
