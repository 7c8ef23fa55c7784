-- flow: jobs that wait for each other are put, all of them or none.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local refuse = require("base.refuse")
local batch = require("base.batch")
local dependency = require("nouns.dependency.dependency")
local flows = require("nouns.flow.flow")
local job = require("nouns.job.job")
local queue_bounds = require("nouns.queue.queue_bounds")
local queues = require("nouns.queue.queue")
local result = require("nouns.job.result")
local state = require("nouns.job.state")
local put_new = require("verbs.put_new")
local put_one = require("verbs.put_one")
local M = {}

local PIECE = 256 -- jobs read at once
local SPILL = record.SPILL
local LEVEL = 1 -- of the cores that know edges

-- Why a job cannot wait for one that is not of the flow, or nil.
local function refusal(ctx, jid, edge)
  local p = job.read(ctx, edge.parent)
  local has_result = result.read(ctx, edge.parent)
  if not p and not has_result then refuse.call("JOB_NOT_FOUND", edge.parent) end
  if p and p.state ~= state.COMPLETE then
    if edge.policy == dependency.WAIT then return end
    local following = call("ZCOUNT", ctx.keys.dependents .. edge.parent, dependency.FOLLOWS, "+inf")
    if following < dependency.MOST_FOLLOWING then return end
    refuse.call("TOO_MANY", "at most " .. dependency.MOST_FOLLOWING .. " jobs wait for every end of one job")
  end
  if edge.from >= 0 and edge.policy ~= dependency.RUN and not has_result then
    refuse.call("DEPENDENCY_REFUSED", jid .. " needs the result of " .. edge.parent .. ", which is not kept")
  end
end

-- Refuses a flow that could not be put whole; and notes which jobs are parents, and which edges lead to jobs of it.
local function check(ctx, flow, jobs)
  local own, counts, names = {}, {}, {}
  for i = 1, #jobs do
    local one = jobs[i]
    if one.jid ~= flows.jid(flow, i - 1) then refuse.call("BAD_ARGUMENT", "jids of a flow are its id and a number") end
    if one.opts.unique_key then refuse.call("BAD_ARGUMENT", "a job of a flow has no unique key") end
    for _, edge in ipairs(one.opts.edges or {}) do
      local parent = own[edge.parent]
      if parent then parent.opts.is_parent, edge.is_own = true, true else refusal(ctx, one.jid, edge) end
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

local function put_alone(ctx, one)
  one.target.queue, one.target.is_put = keys.of_queue(ctx, one.target.name), true
  local refused = put_one.run(ctx, one.target, "new", one.jid, one.klass, one.data, one.opts)
  if refused then error(refused) end
end

local PLACED = { "name", "priority", "retries", "delay", "losses" }

-- Whether a job waits for one that is not of the flow, or has data that its record does not hold.
local function is_alone(one)
  if #one.data > SPILL then return true end
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

-- `jobs` are as those of `put_options.placed`; each waits for earlier ones, or for jobs that exist. Returns 1, or 0
-- if the flow was put before.
function M.put(ctx, flow, label, jobs)
  local total = flows.read(ctx, flow)
  if total == #jobs then return 0 end
  if total then refuse.call("JOB_EXISTS", ("%s is a flow of %d jobs"):format(flow, total)) end
  check(ctx, flow, jobs)
  root.require_level(ctx, LEVEL)
  local i = 1
  while i <= #jobs do
    local last = last_alike(jobs, i)
    local target = jobs[i].target
    target.queue, target.is_put = keys.of_queue(ctx, target.name), true
    if not put_together(ctx, target, jobs, i, last) then
      for n = i, last do put_alone(ctx, jobs[n]) end
    end
    i = last + 1
  end
  flows.write(ctx, flow, #jobs, label, steps_of(jobs))
  return 1
end

-- What is known of some flows: total, created and label of each, an empty list of one that is not there.
function M.get(ctx, args, first, last)
  local rows = {}
  for i = first, last do rows[#rows + 1] = { flows.read(ctx, args[i]) } end
  return rows
end

-- The state of each job of a flow, as its number in the record, 0 for one that is not kept any more.
function M.states(ctx, flow)
  local total, states = flows.read(ctx, flow), {}
  if not total then refuse.call("JOB_NOT_FOUND", flow) end
  for first = 0, total - 1, PIECE do
    local names = {}
    for number = first, min(first + PIECE, total) - 1 do
      names[#names + 1] = ctx.keys.job .. flows.jid(flow, number)
    end
    for _, bytes in ipairs(call("MGET", unpack_(names))) do
      states[#states + 1] = bytes and ctx.record.state_of(bytes) or 0
    end
  end
  return states
end

-- What the jobs of some flows are and wait for: see `flows.steps`.
function M.steps(ctx, flow)
  local steps = flows.steps(ctx, flow)
  if not steps then refuse.call("JOB_NOT_FOUND", flow) end
  return steps
end

-- A page of flows, the newest first, behind `score member`: the next cursor ("" at the end), how many there are, the
-- ids.
function M.list(ctx, score, member, count)
  local total = call("ZCARD", ctx.keys.flows)
  local page = batch.page(ctx.keys.flows, 0, total, score, member, count, true)
  local reply, n = { "", total }, #page
  for i = 1, n, 2 do reply[#reply + 1] = page[i] end
  if n == 2 * count then reply[1] = concat({ page[n], page[n - 1] }, " ") end
  return reply
end

-- Flows are not listed any more. Returns 1 for each that was.
function M.forget(ctx, args, first, last)
  local reply = {}
  for i = first, last do reply[#reply + 1] = flows.forget(ctx, args[i]) end
  return reply
end

return M
