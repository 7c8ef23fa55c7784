-- native_dependencies: the native door's rows for jobs that wait for others.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local bounds = require("base.bounds")
local checks = require("doors.checks")
local requests = require("doors.requests")
local put_options = require("doors.put_options")
local dependency = require("nouns.dependency.dependency")
local complete_x = require("verbs.complete_x")
local depend = require("verbs.depend")
local flow_verbs = require("verbs.flow")
local flow_reading = require("verbs.flow_reading")

local MOST = bounds.BATCH
local MOST_OF_FLOW = 4096 -- what the jobs of one may weigh together
local MOST_STATES = 4096 -- that one call looks at
local MODES = { add = true, remove = true, all = true }
local ADDS, DRAINS, READS = {}, { "allow-oom" }, { "no-writes" }

-- Where a page begins: "score jid", as it was returned.
local function cursor(args, i)
  local given = args[i]
  if given == "" then return nil end
  local score, member = (given or ""):match("^(%d+) (.+)$")
  if not score then checks.expected("cursor", "the cursor that the previous page returned", given) end
  return score, member
end

-- What becomes of the job in args[2], and where the follow-ups begin.
local function outcome(args)
  local count = checks.number(args, 9, "parents", 0, dependency.MOST)
  local how = {
    data = args[4], keep = checks.span(args, 5, "keep"), result = args[6],
    next_queue = checks.optional(args, 7, "next queue"), delay = checks.span(args, 8, "delay"), parents = {},
  }
  checks.body(args, 4)
  checks.body(args, 6)
  for i = 1, count do how.parents[i] = checks.name(args, 9 + i, "parent") end
  if how.next_queue == "" and (how.delay > 0 or count > 0) then checks.bad("delay and parents need a next queue") end
  if how.next_queue ~= "" and how.keep > 0 then checks.bad("a result is kept where the job ends") end
  return how, 10 + count
end

local function check_flow(jobs)
  if #jobs < 1 or #jobs > MOST then checks.bad("a flow is put with 1 to " .. MOST .. " jobs") end
  for i = 2, #jobs do
    if jobs[i].opts.group then checks.bad("only the first job of a flow stands for a large group") end
  end
end

return {
  { "depend", ADDS, "line number mode jid parent...", requests.row(function(ctx, args)
    local mode, jid = args[3], checks.name(args, 4, "jid")
    if not MODES[mode] then checks.expected("mode", "add, remove or all", mode) end
    local last = checks.names(args, 5, "parent")
    if mode == "all" and last >= 5 then checks.bad("all takes no names") end
    return depend.run(ctx, mode, jid, args, 5, last)
  end) },
  { "dependents", READS, "jid cursor count", function(ctx, args)
    local jid, score, member = checks.name(args, 1, "jid"), cursor(args, 2)
    return depend.dependents(ctx, jid, score, member, checks.number(args, 3, "count", 1, MOST))
  end },
  { "flow_put", ADDS, "line number flow label " ..
    "(queue priority retries delay jid klass data options (option value)...)...",
    requests.row(function(ctx, args)
      local flow, label = checks.name(args, 3, "flow"), checks.name(args, 4, "label")
      local jobs = put_options.placed(args, 5, 0, MOST_OF_FLOW, true)
      check_flow(jobs)
      return flow_verbs.put(ctx, flow, label, jobs)
    end) },
  { "end_with_flow", DRAINS, "worker jid token data keep kind flow label last number... " ..
    "(queue priority retries delay jid klass data options (option value)...)...", function(ctx, args)
    local worker, jid = checks.word(args, 1, "worker"), checks.name(args, 2, "jid")
    local how = { data = args[4], keep = checks.span(args, 5, "keep"), kind = args[6], last = {} }
    checks.body(args, 4)
    if how.kind ~= "one" and how.kind ~= "list" then checks.expected("kind", "one or list", how.kind) end
    local flow, label = checks.name(args, 7, "flow"), checks.name(args, 8, "label")
    local count = checks.number(args, 9, "last", 1, how.kind == "one" and 1 or MOST)
    local jobs = put_options.placed(args, 10 + count, 0, MOST_OF_FLOW, true)
    check_flow(jobs)
    for i = 1, count do how.last[i] = checks.number(args, 9 + i, "number", 0, #jobs - 1) end
    return flow_verbs.end_with(ctx, worker, jid, tonumber(args[3]), how, flow, label, jobs)
  end },
  { "flow_add", ADDS, "line number flow start repeat worker jid token times " ..
    "(queue priority retries delay jid klass data options (option value)...)...",
    requests.row(function(ctx, args)
      local flow, start = checks.name(args, 3, "flow"), checks.number(args, 4, "start", 0, bounds.CENTURY)
      local is_repeat = checks.number(args, 5, "repeat", 0, 1) == 1
      local adder = args[6] ~= "" and {
        worker = checks.word(args, 6, "worker"), jid = checks.name(args, 7, "jid"), token = tonumber(args[8]),
        times = checks.number(args, 9, "times", 0, bounds.CENTURY),
      } or nil
      local jobs = put_options.placed(args, 10, 0, MOST_OF_FLOW, true)
      if #jobs < 1 or #jobs > MOST then checks.bad("1 to " .. MOST .. " jobs a call are added to a flow") end
      for i = 1, #jobs do
        if jobs[i].opts.group then checks.bad("only the first job of a flow stands for a large group") end
      end
      return flow_verbs.add(ctx, flow, start, is_repeat, adder, jobs)
    end) },
  { "flow_close", DRAINS, "line number flow", requests.row(function(ctx, args)
    return flow_verbs.close(ctx, checks.name(args, 3, "flow"))
  end) },
  { "flow_results", READS, "flow start count", function(ctx, args)
    local flow, start = checks.name(args, 1, "flow"), checks.number(args, 2, "start", 0, bounds.CENTURY)
    return flow_reading.results(ctx, flow, start, checks.number(args, 3, "count", 1, MOST))
  end },
  { "flow_get", READS, "flow...", function(ctx, args)
    return flow_reading.get(ctx, args, 1, checks.names(args, 1, "flow"))
  end },
  { "flow_states", READS, "flow start count", function(ctx, args)
    local flow, start = checks.name(args, 1, "flow"), checks.number(args, 2, "start", 0, bounds.CENTURY)
    return flow_reading.states(ctx, flow, start, checks.number(args, 3, "count", 1, MOST_STATES))
  end },
  { "flow_steps", READS, "flow", function(ctx, args) return flow_reading.steps(ctx, checks.name(args, 1, "flow")) end },
  { "flow_list", READS, "cursor count", function(ctx, args)
    local score, member = cursor(args, 1)
    return flow_reading.list(ctx, score, member, checks.number(args, 2, "count", 1, MOST))
  end },
  { "flow_forget", DRAINS, "line number flow...", requests.row(function(ctx, args)
    return flow_reading.forget(ctx, args, 3, checks.names(args, 3, "flow"))
  end) },
  { "complete_x", DRAINS, "worker jid token data keep result next_queue delay parents parent... " ..
    "(queue priority retries delay jid klass data options (option value)...)...", function(ctx, args)
    local worker, jid = checks.word(args, 1, "worker"), checks.name(args, 2, "jid")
    local how, first = outcome(args)
    local jobs = put_options.follow_ups(args, first, #how.parents)
    for i = 1, #jobs do
      if jobs[i].jid == jid then checks.bad("a follow-up must be another job") end
    end
    return complete_x.run(ctx, worker, jid, tonumber(args[3]), how, jobs)
  end },
}
