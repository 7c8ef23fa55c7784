-- flow: jobs that wait for each other are put, all of them or none.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local refuse = require("base.refuse")
local dependency = require("nouns.dependency.dependency")
local links = require("nouns.dependency.dependency_links")
local flows = require("nouns.flow.flow")
local members = require("nouns.flow.members")
local ending = require("nouns.job.ending")
local job = require("nouns.job.job")
local placement = require("nouns.job.placement")
local lease = require("nouns.lease.lease")
local queue_bounds = require("nouns.queue.queue_bounds")
local queues = require("nouns.queue.queue")
local result = require("nouns.job.result")
local state = require("nouns.job.state")
local advance = require("verbs.advance")
local put_new = require("verbs.put_new")
local put_one = require("verbs.put_one")
local M = {}

local SPILL = record.SPILL
local LEVEL = 1 -- of the cores that know edges

-- Refuses an edge to a job that is not of the flow, where it cannot be; `coming` has by parent how many jobs of this
-- call are going to follow it.
local function check_outside(ctx, jid, edge, coming)
  if edge.policy == dependency.RESCUE then refuse.call("BAD_ARGUMENT", jid .. " rescues no job of its flow") end
  local p = job.read(ctx, edge.parent)
  local has_result = result.read(ctx, edge.parent)
  if not p and not has_result then refuse.call("JOB_NOT_FOUND", edge.parent) end
  if p and p.state ~= state.COMPLETE then
    if edge.policy == dependency.WAIT then return end
    local new = (coming[edge.parent] or 0) + 1
    coming[edge.parent] = new
    local following = call("ZCOUNT", ctx.keys.dependents .. edge.parent, dependency.FOLLOWS, "+inf")
    if following + new <= dependency.MOST_FOLLOWING then return end
    refuse.call("TOO_MANY", "at most " .. dependency.MOST_FOLLOWING .. " jobs wait for every end of one job")
  end
  if edge.from >= 0 and edge.policy ~= dependency.RUN and not has_result then
    refuse.call("DEPENDENCY_REFUSED", jid .. " needs the result of " .. edge.parent .. ", which is not kept")
  end
end

local function check_numbers(flow, jobs, start)
  for i = 1, #jobs do
    if jobs[i].jid ~= flows.jid(flow, start + i - 1) then
      refuse.call("BAD_ARGUMENT", "jids of a flow are its id and a number")
    end
  end
end

-- Refuses jobs that could not be put whole; and notes which are parents, and which edges lead to others of them.
local function check(ctx, flow, jobs)
  local own, counts, names, coming = {}, {}, {}, {}
  for i = 1, #jobs do
    local one = jobs[i]
    if one.opts.unique_key then refuse.call("BAD_ARGUMENT", "a job of a flow has no unique key") end
    for _, edge in ipairs(one.opts.edges or {}) do
      local parent = own[edge.parent]
      if parent then
        parent.opts.is_parent, edge.is_own = true, true
      else
        check_outside(ctx, one.jid, edge, coming)
      end
    end
    own[one.jid], names[i] = one, ctx.keys.job .. one.jid
    counts[one.target.name] = (counts[one.target.name] or 0) + 1
  end
  if call("EXISTS", unpack_(names)) > 0 then refuse.call("JOB_EXISTS", "a job has the jid of one of flow " .. flow) end
  for name, count in pairs(counts) do
    if queue_bounds.room(keys.of_queue(ctx, name)) < count then refuse.call("QUEUE_FULL", name) end
  end
  for name in pairs(counts) do queues.know(ctx, keys.of_queue(ctx, name)) end
end

local function put_alone(ctx, one, doomed)
  one.target.queue, one.target.is_put = keys.of_queue(ctx, one.target.name), true
  one.target.counts, one.target.doomed = one.is_counted, doomed
  local refused = put_one.run(ctx, one.target, "new", one.jid, one.klass, one.data, one.opts)
  if refused then error(refused) end
end

local PLACED = { "name", "priority", "retries", "delay", "losses" }

-- Whether a job waits for one that is not of the flow, or for members, or has data that its record does not hold.
local function is_alone(one)
  if #one.data > SPILL or one.opts.group then return true end
  for _, edge in ipairs(one.opts.edges or {}) do
    if not edge.is_own then return true end
  end
  return false
end

local function goes_with(first, other)
  for _, name in ipairs(PLACED) do
    if other.target[name] ~= first.target[name] then return false end
  end
  return true
end

-- The last of the jobs from the one at `i` on that go to one place together.
local function last_alike(jobs, i)
  local last = i
  if is_alone(jobs[i]) then return i end
  while last < #jobs and goes_with(jobs[i], jobs[last + 1]) and not is_alone(jobs[last + 1]) do
    last = last + 1
  end
  return last
end

-- Puts some jobs in a few commands. Returns whether that could be done.
local function put_together(ctx, target, jobs, first, last)
  if is_alone(jobs[first]) then return false end
  local some = { depend = false, unique = false }
  for i = first, last do some[#some + 1] = jobs[i] end
  local done = put_new.run(ctx, target, some)
  if not done then target.limited, target.first = nil, nil end
  return done
end

-- Those whose parents failed before fail once all are there, so that what waits for them learns of it.
local function put_all(ctx, jobs)
  local i, doomed = 1, {}
  while i <= #jobs do
    local last = last_alike(jobs, i)
    local target = jobs[i].target
    target.queue, target.is_put = keys.of_queue(ctx, target.name), true
    if not put_together(ctx, target, jobs, i, last) then
      for n = i, last do put_alone(ctx, jobs[n], doomed) end
    end
    i = last + 1
  end
  for k = 1, #doomed do ending.fail_for_parent(ctx, doomed[k].jid, doomed[k].why) end
end

-- What the jobs are and wait for, as `flows.steps` has it: parents in a row that are of the flow, as a range of their
-- numbers.
local function steps_of(jobs)
  local numbers, steps = {}, {}
  for i = 1, #jobs do
    local step, last = { jobs[i].klass }, nil
    for _, edge in ipairs(jobs[i].opts.edges or {}) do
      local n, number = #step, numbers[edge.parent]
      if number and last and number == last + 1 and step[n] == edge.policy then
        step[n - 1] = number
      else
        step[n + 1], step[n + 2], step[n + 3] = number or edge.parent, number or edge.parent, edge.policy
      end
      last = number
    end
    numbers[jobs[i].jid], steps[i] = i - 1, step
  end
  return steps
end

-- The number of the job that ends a flow: the last one that rescues no other.
local function ending_of(jobs)
  for i = #jobs, 1, -1 do
    local edges = jobs[i].opts.edges
    if not edges or edges[1].policy ~= dependency.RESCUE then return i - 1 end
  end
  return #jobs - 1
end

-- `jobs` are as those of `put_options.placed`; each waits for earlier ones, or for jobs that exist. Returns 1, or 0
-- if the flow was put before.
function M.put(ctx, flow, label, jobs)
  local total = flows.read(ctx, flow)
  if total == #jobs then return 0 end
  if total then refuse.call("JOB_EXISTS", ("%s is a flow of %d jobs"):format(flow, total)) end
  check_numbers(flow, jobs, 0)
  check(ctx, flow, jobs)
  root.require_level(ctx, LEVEL)
  put_all(ctx, jobs)
  flows.write(ctx, flow, #jobs, label, steps_of(jobs), ending_of(jobs))
  if jobs[1].opts.group then members.write(ctx, flow, jobs[1].opts.group) end
  ctx.events.changed(ctx, "flows")
  return 1
end

-- Jobs become those of the flow, the first one with this number.
local function renumber(flow, jobs, number)
  local names = {}
  for i = 1, #jobs do
    local one, name = jobs[i], flows.jid(flow, number + i - 1)
    names[one.jid], one.jid = name, name
    for _, edge in ipairs(one.opts.edges or {}) do edge.parent = names[edge.parent] or edge.parent end
  end
end

-- A job whose lease is held ends as jobs of a flow do that is put with it: it waits, without a lease, for those with
-- the numbers in `how.last`, and then is complete with the `one` result or the `list` of theirs (`how.kind`), which is
-- kept for `how.keep` ms. Returns the state's name, or a code and the state the job is in.
function M.end_with(ctx, worker, jid, token, how, flow, label, jobs)
  local r, refused, other = lease.held(ctx, worker, jid, token)
  if not r then
    local is_again = other and other.token == token and flows.read(ctx, flow)
    return { is_again and "again" or refused, other and state.NAME[other.state] or "" }
  end
  if flows.read(ctx, flow) then -- of an earlier job with this jid
    flow = format("%s.%.0f", flow, token)
    renumber(flow, jobs, 0)
  end
  if M.put(ctx, flow, label, jobs) == 0 then refuse.call("JOB_EXISTS", "flow " .. flow .. " was put before") end
  local queue = keys.of_queue(ctx, r.queue)
  advance.leave(ctx, queue, jid, r, how.data)
  for i = 1, #how.last do
    local parent = flows.jid(flow, how.last[i])
    links.join_by(ctx, jid, r, { parent = parent, policy = dependency.FAIL, from = i - 1, length = 0 })
  end
  call("HSET", ctx.keys.extra .. jid, dependency.PLACES, format("%s %.0f", how.kind, how.keep))
  placement.continue(ctx, queue, jid, r, 0)
  return { state.NAME[r.state] }
end

-- The jobs that are to be added, without those that were added before; if `is_repeat`, there may be such, and `start`
-- counts only what came so: those that others added meanwhile, jobs that run above all, move the numbers on.
local function new_ones(group, start, jobs, is_repeat)
  local done = group.first + (is_repeat and group.put or group.members) * group.stride - start
  if done < 0 or done > 0 and not is_repeat then
    refuse.call("WRONG_STATE", format("the next job of flow %s has the number %d", group.flow, start + done))
  end
  local new = {}
  for i = done + 1, #jobs do new[#new + 1] = jobs[i] end
  renumber(group.flow, new, group.first + group.members * group.stride)
  return new
end

-- Whether a member of the flow, whose lease is held, added these before: `adder` has worker, jid, token, and how often
-- this run has added. Refused for a job that is none.
local function was_added(ctx, flow, adder)
  local r, refused = lease.held(ctx, adder.worker, adder.jid, adder.token)
  if not r then refuse.for_all(refused) end
  if not record.has(r.flags, record.FLAG.FLOW) or members.flow_of(adder.jid) ~= flow then
    refuse.call("BAD_ARGUMENT", format("%s is not one of the jobs of the large group of flow %s", adder.jid, flow))
  end
  return members.was_added(ctx, flow, adder)
end

-- More members of a large group, as `jobs` of `M.put`, which have the numbers from `start` on. If `is_repeat`, those
-- that were added before stay as they are. A member that runs (`adder`) may add others when the group is closed, too,
-- if that has not ended yet; what a former run of it added stays as it is. Returns how many are new.
function M.add(ctx, flow, start, is_repeat, adder, jobs)
  local group = members.read(ctx, flow)
  if not group then refuse.call("JOB_NOT_FOUND", "flow " .. flow .. " has no large group") end
  if adder and was_added(ctx, flow, adder) then return 0 end
  if #jobs % group.stride ~= 0 or (start - group.first) % group.stride ~= 0 then
    refuse.call("BAD_ARGUMENT", format("each member of flow %s is %d jobs", flow, group.stride))
  end
  check_numbers(flow, jobs, start)
  local new = new_ones(group, start, jobs, is_repeat)
  if #new == 0 then return 0 end
  if group.has_ended or not group.is_open and not adder then refuse.call("FLOW_CLOSED", flow) end
  check(ctx, flow, new)
  for i = group.stride, #new, group.stride do new[i].is_counted = true end
  members.add(ctx, flow, #new / group.stride, is_repeat, adder)
  put_all(ctx, new)
  ctx.events.changed(ctx, "flow:" .. flow)
  return #new
end

-- A large group gets no more members. Returns 1, or 0 if it was closed before.
function M.close(ctx, flow)
  local group = members.read(ctx, flow)
  if not group then refuse.call("JOB_NOT_FOUND", "flow " .. flow .. " has no large group") end
  if not group.is_open then return 0 end
  members.close(ctx, flow)
  group.is_open = false
  ending.settle_group(ctx, group)
  ctx.events.changed(ctx, "flow:" .. flow)
  return 1
end

return M
