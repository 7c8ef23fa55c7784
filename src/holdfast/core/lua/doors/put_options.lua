-- put_options: the options of a put, as words, checked before anything is written.
local bounds = require("base.bounds")
local refuse = require("base.refuse")
local text = require("base.text")
local checks = require("doors.checks")
local ids = require("doors.ids")
local dependency = require("nouns.dependency.dependency")
local M = {}

-- Of one call: a job counts 2, with options 3, each option 1, a parent 2. One takes some
-- five microseconds.
local MOST = 1024
local MOST_OF = { tags = bounds.TAGS, throttles = bounds.THROTTLES, depends = dependency.MOST }
local LIST = { tag = "tags", throttle = "throttles", depends = "depends" }
local KINDS = { fixed = true, exponential = true }
local LEAST = { expires = 1, limit = 1, keep = 0, debounce_max = 1 } -- ms

local LONGEST_TRACE = 1024 -- bytes
-- Of a recurring job: its calendar, and the most bytes of each. `recurrence` has what they mean.
M.CALENDAR = {
  cron = 200, zone = 100, tz = 100, missed = 20, overlap = 20, jitter = 20, start = 20, ["end"] = 20, plan = 65536,
}
local IS_MS = { jitter = true, start = true, ["end"] = true }
local IS_WORD = { cron = true, zone = true, overlap = true }
local MISSED, MOST_MISSED = { once = true, skip = true, all = true }, 1000
-- Of one that code declares: the most bytes of its module, of the version of the program, and of the name of the
-- worker that put it.
local DECLARED = { module = 200, version = 100, by = 200 }
local whole = { ["1"] = 1, ["2"] = 2, ["3"] = 3 }
local HOLDS = { ["end"] = true, start = true }
local POLICIES = { wait = true, run = true, fail = true, rescue = true }
local GATHERS = { list = true, pages = true }
local MOST_EDGES = bounds.BATCH
local CONFLICTS = { "keep", "raise", "replace", "cancel" }

-- "kind:first:most:jitter": ms, ms, percent.
function M.backoff(given)
  local kind, first, most, jitter = match(given, "^(%a+):(%d+):(%d+):(%d+)$")
  first, most, jitter = tonumber(first), tonumber(most), tonumber(jitter)
  if KINDS[kind] and first <= bounds.MONTH and most <= bounds.MONTH and jitter <= 100 then
    return { kind, first, most, jitter }
  end
  checks.bad("backoff is fixed or exponential, with first and most in ms and jitter in percent")
end

local function trace(given)
  if #given <= LONGEST_TRACE and text.is_clean(given) then return given end
  checks.bad("a trace is 1 to " .. LONGEST_TRACE .. " bytes of UTF-8 without control characters")
end

-- How long a job has its key: until its end, until its start, or for some ms from the put.
local function hold(args, i)
  if HOLDS[args[i]] then return args[i] end
  return checks.number(args, i, "unique_for", 1, bounds.CENTURY)
end

local OWN = "^own " -- only a job of the queue that is put into may be met: of programs that are limited to some
local function conflict(given)
  local choice = gsub(given, OWN, "")
  for i = 1, #CONFLICTS do
    if CONFLICTS[i] == choice then return given end
  end
  checks.bad("on_conflict is " .. concat(CONFLICTS, ", ", 1, #CONFLICTS - 1) .. " or " .. CONFLICTS[#CONFLICTS])
end

-- An option of a calendar as it is kept. What it means is checked by those who plan, but nothing odd is kept.
function M.of_calendar(args, i, option)
  local given = checks.text(args, i + 1, option, M.CALENDAR[option])
  if IS_MS[option] then return format("%.0f", checks.number(args, i + 1, option, 0, bounds.CENTURY)) end
  if IS_WORD[option] and not text.is_clean(given) then checks.bad(option .. " is text without control characters") end
  if option == "missed" and not MISSED[given] then
    checks.number(args, i + 1, "missed, if not once, skip or all,", 1, MOST_MISSED)
  end
  return given
end

local function add(opts, seen, list, value)
  local found, known = opts[list] or {}, seen[list] or {}
  opts[list], seen[list] = found, known
  if known[value] then return end
  if #found >= MOST_OF[list] then refuse.call("TOO_MANY", "at most " .. MOST_OF[list] .. " " .. list .. " a job") end
  found[#found + 1], known[value] = value, true
end

-- The options of keys: those of a job that is put on the straight way.
local OF_KEYS = {
  unique_key = function(args, i) return checks.name(args, i, "unique_key") end,
  unique_for = hold,
  on_conflict = function(args, i) return conflict(args[i]) end,
}

-- "policy from length parent": a parent, what becomes of the job when that ends, and the place in its data of what that
-- ends with (from -1: none).
local function edge(opts, given, i, size)
  local policy, from, length, parent = match(given[i] or "", "^(%a+) (-?%d+) (%d+) (.+)$")
  from, length = tonumber(from), tonumber(length)
  if not POLICIES[policy] then checks.bad("an edge is wait, run, fail or rescue, two numbers of a place, and a jid") end
  if from < -1 or from + length > size then checks.bad("the place of an edge lies outside the data") end
  if not text.is_clean(parent) or #parent > bounds.NAME then checks.bad("the parent of an edge is no jid") end
  opts.edges, opts.by_edge = opts.edges or {}, opts.by_edge or {}
  if #opts.edges >= MOST_EDGES then refuse.call("TOO_MANY", "at most " .. MOST_EDGES .. " parents a job") end
  if opts.by_edge[parent] then checks.bad("a job waits for a parent by one edge") end
  opts.by_edge[parent] = true
  opts.edges[#opts.edges + 1] = { policy = policy, from = from, length = length, parent = parent }
end

-- "policy gather stride": a job that stands for a large group; see `members`.
local function group(given)
  local policy, gather, stride = match(given, "^(%a+) (%a+) (%d+)$")
  stride = tonumber(stride)
  if POLICIES[policy] and policy ~= "rescue" and GATHERS[gather] and stride >= 1 and stride <= MOST_EDGES then
    return { policy = policy, gather = gather, stride = stride }
  end
  checks.bad("a group is wait, run or fail, then list or pages, and how many jobs a member is")
end

-- The options in args[first … first + 2 * count - 1], (option, value) pairs.
local function read(args, first, count, in_flow)
  local opts, seen = {}, nil
  for i = first, first + 2 * count - 1, 2 do
    local option, list = args[i], LIST[args[i]]
    if OF_KEYS[option] then
      opts[option] = OF_KEYS[option](args, i + 1)
    elseif list then
      if list == "depends" and in_flow then checks.bad("a job of a flow waits by edges, not by depends") end
      local value = list == "throttles" and ids.throttle(args, i + 1) or checks.name(args, i + 1, option)
      seen = seen or {}
      add(opts, seen, list, value)
    elseif option == "untagged" then
      opts.tags = opts.tags or {}
    elseif option == "unthrottled" then
      opts.throttles = opts.throttles or {}
    elseif option == "backoff" then
      opts.backoff = M.backoff(args[i + 1])
    elseif M.CALENDAR[option] then
      opts.calendar = opts.calendar or {}
      opts.calendar[option] = M.of_calendar(args, i, option)
    elseif DECLARED[option] then
      opts.declared = opts.declared or {}
      opts.declared[option] = checks.text(args, i + 1, option, DECLARED[option])
    elseif option == "trace" then
      opts.trace = trace(args[i + 1])
    elseif option == "edge" and in_flow then
      edge(opts, args, i + 1, #args[first - 2])
    elseif option == "group" and in_flow then
      opts.group = group(args[i + 1])
    elseif option == "needs" then
      opts.needs = checks.number(args, i + 1, option, 1, bounds.LEVELS)
    elseif LEAST[option] then
      opts[option] = checks.number(args, i + 1, option, LEAST[option], bounds.CENTURY)
    else
      checks.bad("unknown option " .. tostring(option))
    end
  end
  local how = opts.on_conflict
  if how and find(how, OWN) then opts.on_conflict, opts.only_own = gsub(how, OWN, ""), true end
  return opts
end

-- The options in args[first …], which are `count` (option, value) pairs and nothing else.
function M.one(args, first, count)
  if first + 2 * count - 1 ~= #args then checks.bad("the number of options is wrong") end
  return read(args, first, count)
end

local function weigh(jobs, weight)
  jobs.weight = jobs.weight + weight
  if jobs.weight <= jobs.most then return end
  local weights = " a call: a job counts 2, with options 3, each option 1, a parent 2"
  refuse.call("TOO_MANY", "at most " .. jobs.most .. weights)
end

-- Appends the job in args[i …]: jid, klass, data, how many options, (option, value)…
-- Returns the place behind it.
local function append(jobs, args, i)
  local count = checks.number(args, i + 3, "options", 0, MOST)
  weigh(jobs, 2 + count + (count > 0 and 1 or 0))
  if i + 3 + 2 * count > #args then checks.bad("an option has no value") end
  checks.data(args, i + 2)
  local opts = read(args, i + 4, count, jobs.in_flow)
  jobs[#jobs + 1] = {
    jid = checks.name(args, i, "jid"), klass = checks.word(args, i + 1, "klass"), data = args[i + 2], opts = opts,
  }
  if opts.unique_key then jobs.unique = true end
  local parents = jobs[#jobs].opts.depends
  if parents then
    jobs.depend = true
    weigh(jobs, #parents)
  end
  return i + 4 + 2 * count
end

-- Jobs in args[first …] for one queue. Their `depend`: some wait for others; `unique`: some have a key.
function M.jobs(args, first)
  local jobs, i = { weight = 0, most = MOST, in_flow = false, depend = false, unique = false }, first
  while i <= #args do i = append(jobs, args, i) end
  return jobs
end

-- Whether all jobs in args[first …] have the same options as the first one but for their unique keys, and no others
-- than those of keys. Returns how many words a job takes, and for how long it has its key; or nil.
function M.keyed(args, first)
  local count = whole[args[first + 3]]
  if not count or count > 3 or args[first + 4] ~= "unique_key" then return nil end
  local width, last = 4 + 2 * count, #args
  local jobs = (last - first + 1) / width
  if jobs ~= floor(jobs) or jobs * (3 + count) > MOST then return nil end
  for i = first + 6, first + width - 2, 2 do
    if not OF_KEYS[args[i]] then return nil end
  end
  for i = first, last, width do
    if args[i + 3] ~= args[first + 3] or args[i + 4] ~= "unique_key" then return nil end
    for k = 6, width - 1 do
      if args[i + k] ~= args[first + k] then return nil end
    end
    checks.name(args, i, "jid")
    checks.word(args, i + 1, "klass")
    checks.data(args, i + 2)
    checks.name(args, i + 5, "unique_key")
  end
  return width, read(args, first + 4, count).unique_for
end

-- Jobs in args[first …], each behind its own place to go; `weight` was used before.
function M.follow_ups(args, first, weight) return M.placed(args, first, weight, MOST, false) end

-- The same of up to `most`; `in_flow`: they may have edges.
function M.placed(args, first, weight, most, in_flow)
  local jobs, i = { weight = weight, most = most, in_flow = in_flow, depend = false, unique = false }, first
  while i <= #args do
    local name, priority, retries, delay, losses = checks.placing(args, i)
    i = append(jobs, args, i + 4)
    if jobs[#jobs].opts.on_conflict == "raise" then
      checks.bad("the on_conflict of a job that follows is keep, replace or cancel")
    end
    jobs[#jobs].target = { name = name, priority = priority, retries = retries, delay = delay, losses = losses }
  end
  return jobs
end

return M
