-- complete_x: the holder of one lease reports that its work is done, and what follows from
-- it, in one step: where the job continues, what it waits for there, and new jobs.
local keys = require("base.keys")
local cycle = require("nouns.dependency.dependency_cycle")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local placement = require("nouns.job.placement")
local queues = require("nouns.queue.queue")
local result = require("nouns.job.result")
local state = require("nouns.job.state")
local links = require("nouns.dependency.dependency_links")
local put_one = require("verbs.put_one")
local advance = require("verbs.advance")
local complete = require("verbs.complete")
local M = {}

-- Why this cannot be, or nil; then the order in which follow-ups are put.
local function check(ctx, jid, r, how, jobs)
  local order, cycles = cycle.in_order(jobs)
  local i, parent = next(cycles)
  if i then return cycle.between(jobs[i].jid, parent) end
  local parents = cycle.beyond(jobs, how.parents)
  return cycle.refusal(ctx, {}, jid, r, parents), order
end

-- Follow-ups come in mode `new`: one that is there already stays as it is.
local function put_all(ctx, jobs, order)
  for n = 1, #jobs do
    local one = jobs[order[n]]
    local target = one.target
    target.queue = keys.of_queue(ctx, target.name)
    put_one.run(ctx, target, "new", one.jid, one.klass, one.data, one.opts)
  end
end

local function end_it(ctx, jid, r, how, jobs, order)
  complete.one(ctx, jid, r, how.data, how.result)
  if how.keep > 0 then result.keep(ctx, jid, how.result, how.keep) end
  put_all(ctx, jobs, order)
  return state.NAME[state.COMPLETE]
end

-- A job whose lease is held continues in the next queue. It may wait for follow-ups, and they for it: so it is
-- written, without a lease, before they come. Returns the state's name.
function M.continue(ctx, jid, r, how, jobs, order)
  local queue = keys.of_queue(ctx, how.next_queue)
  advance.leave(ctx, queue, jid, r, how.data)
  if jobs[1] then
    job.write(ctx, jid, r)
    put_all(ctx, jobs, order)
    r = job.read(ctx, jid)
  end
  links.add(ctx, jid, r, how.parents, {})
  placement.continue(ctx, queue, jid, r, how.delay)
  return state.NAME[r.state]
end

-- `how` has data ("": unchanged), keep and result, next_queue ("": the job ends here), and
-- for that queue delay and parents; `jobs` are as those of `put_x`, each with `target`: name of
-- the queue, priority, retries, delay. Returns the state's name, or a code
-- and the state the job is in (`again`: what it came to since).
function M.run(ctx, worker, jid, token, how, jobs)
  local ends = how.next_queue == ""
  local r, _, other = lease.held(ctx, worker, jid, token)
  if not r then
    local code = (ends and complete or advance).refusal(ctx, jid, other, worker, token)
    return { code, other and state.NAME[other.state] or "" }
  end
  local refused, order = check(ctx, jid, r, how, jobs)
  if refused then return { refused } end
  for i = 1, #jobs do
    -- There may be no room for one more queue; a follow-up that is there already goes nowhere.
    if not job.read(ctx, jobs[i].jid) then queues.know(ctx, keys.of_queue(ctx, jobs[i].target.name)) end
  end
  return { (ends and end_it or M.continue)(ctx, jid, r, how, jobs, order) }
end

return M
