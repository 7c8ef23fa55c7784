-- native_recurring: the native door's rows for recurring jobs.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local bounds = require("base.bounds")
local checks = require("doors.checks")
local requests = require("doors.requests")
local put_options = require("doors.put_options")
local options = require("nouns.job.options")
local plan = require("nouns.recurrence.plan")
local recur = require("verbs.recur")

local LONGEST_NAME = 180 -- of a template: its jobs are named after it, with a number
local OVERLAPS = { allow = true, skip = true, queue = true }
local MODES = { set = true, keep = true }
local ADDS, DRAINS, READS = {}, { "allow-oom" }, { "no-writes" }
local bad, name, names, number = checks.bad, checks.name, checks.names, checks.number

local function template(args, i)
  if #name(args, i, "jid") > LONGEST_NAME then bad("the jid of a recurring job has at most 180 bytes") end
  return args[i]
end

local READERS = {
  queue = function(args, i) return name(args, i, "queue") end,
  klass = function(args, i) return name(args, i, "klass") end,
  data = function(args, i)
    checks.data(args, i)
    return args[i]
  end,
  interval = function(args, i) return number(args, i, "interval", 1, bounds.CENTURY) end,
  backlog = function(args, i) return number(args, i, "backlog", 0, bounds.BACKLOG) end,
  priority = function(args, i) return number(args, i, "priority", -bounds.PRIORITY, bounds.PRIORITY) end,
  retries = function(args, i) return number(args, i, "retries", 0, bounds.RETRIES) end,
  vanished = function(args, i) return number(args, i, "vanished", 0, 1) end,
}

-- The template in line, number, mode, queue, jid, klass, data, interval, offset, priority,
-- retries, backlog, n, (option, value)…
local function read(args)
  local opts = put_options.one(args, 14, number(args, 13, "options", 0, 512))
  if opts.depends then bad("a recurring job depends on nothing") end
  local t = {
    tags = opts.tags or {}, throttles = opts.throttles or {},
    options = options.of_template(opts, opts.expires),
  }
  for i, field in pairs({ [4] = "queue", [6] = "klass", [7] = "data", [8] = "interval", [10] = "priority",
    [12] = "backlog" }) do
    t[field] = READERS[field](args, i)
  end
  t.retries, t.options.losses = checks.retries(args, 11)
  t.declared = opts.declared
  if t.declared and not (t.declared.module and t.declared.version and t.declared.by) then
    bad("a declaration has module, version and by")
  end
  local calendar = opts.calendar
  t.overlap = calendar and calendar.overlap
  if t.overlap and not OVERLAPS[t.overlap] then bad("overlap is allow, skip or queue") end
  if calendar and (calendar.cron or calendar.plan) then
    t.calendar, t.moments = calendar, plan.read(calendar.plan or "") or bad("plan is pairs of ms")
    if not calendar.cron then bad("a calendar has a cron expression") end
    if not t.moments[1] then bad("the calendar has no moment to come") end
  end
  return t
end

-- What a change of a calendar has to bring: `plan` with all that its moments depend on, or only what they do not.
local function check_calendar(found)
  local calendar = found.calendar
  if not calendar then return end
  if calendar.plan then
    found.moments = plan.read(calendar.plan) or bad("plan is pairs of ms")
    if not found.moments[1] then bad("the calendar has no moment to come") end
    if not calendar.cron then bad("a plan comes with its cron expression") end
  else
    for field in pairs(calendar) do
      if field ~= "missed" then bad("a change of " .. field .. " needs a plan") end
    end
  end
end

-- (key, value) pairs from args[4] on; `throttle` may come again and again, and
-- `unthrottled` stands for none.
local function changes(args)
  local found, throttles = {}, {}
  for i = 4, checks.groups(args, 4, 2), 2 do
    local key = args[i]
    if key == "throttle" then
      throttles[#throttles + 1], throttles[#throttles + 2] = key, args[i + 1]
    elseif key == "unthrottled" then
      found.throttles = {}
    elseif key == "overlap" then
      found.overlap = OVERLAPS[args[i + 1]] and args[i + 1] or bad("overlap is allow, skip or queue")
    elseif put_options.CALENDAR[key] then
      found.calendar = found.calendar or {}
      found.calendar[key] = put_options.of_calendar(args, i, key)
    elseif READERS[key] then
      found[key] = READERS[key](args, i + 1)
    else
      bad("unknown key " .. tostring(key))
    end
  end
  check_calendar(found)
  if throttles[1] then found.throttles = put_options.one(throttles, 1, #throttles / 2).throttles end
  return found
end

return {
  { "recur", ADDS,
    "line number mode queue jid klass data interval offset priority retries backlog n (option value)...",
    requests.row(function(ctx, args)
      if not MODES[args[3]] then bad("mode is set or keep") end
      local jid, t, offset = template(args, 5), read(args), number(args, 9, "offset", -bounds.CENTURY, bounds.CENTURY)
      return recur.run(ctx, jid, t, offset, args[3] == "keep")
    end) },
  { "recur_unplanned", READS, "until count [skip]", function(ctx, args)
    return recur.unplanned(ctx, checks.time(args, 1, "until"), number(args, 2, "count", 1, 1000),
      args[3] and number(args, 3, "skip", 0, 1000000) or 0)
  end },
  { "recur_extend", ADDS, "line number jid after tz plan [anew]", requests.row(function(ctx, args)
    local jid, after, tz = name(args, 3, "jid"), checks.time(args, 4, "after"), checks.text(args, 5, "tz", 100)
    local moments = plan.read(args[6] or "") or bad("plan is pairs of ms")
    if args[7] and number(args, 7, "anew", 0, 1) == 1 then return recur.replan(ctx, jid, moments, tz) end
    if moments[2] and moments[2] <= after then bad("the plan begins before the moment that it follows") end
    return recur.extend(ctx, jid, after, moments, tz)
  end) },
  { "recur_get", READS, "jid...", function(ctx, args) return recur.get(ctx, args, 1, names(args, 1, "jid")) end },
  { "recur_update", ADDS, "line number jid (key value)...", requests.row(function(ctx, args)
    return recur.update(ctx, name(args, 3, "jid"), changes(args))
  end) },
  { "recur_tag", ADDS, "mode jid tag...", function(ctx, args)
    if args[1] ~= "add" and args[1] ~= "remove" then bad("mode is add or remove") end
    return recur.tag(ctx, name(args, 2, "jid"), args[1] == "add", args, 3, names(args, 3, "tag"))
  end },
  { "recur_pause", DRAINS, "line number on jid [who why until]", requests.row(function(ctx, args)
    local on, jid = number(args, 3, "on", 0, 1) == 1, name(args, 4, "jid")
    local who = args[5] and checks.optional(args, 5, "who") or ""
    local until_ = args[7] and checks.time(args, 7, "until") or 0
    return recur.pause(ctx, jid, on, who, checks.text({ args[6] or "" }, 1, "why", checks.SHORT), until_)
  end) },
  { "recur_run", ADDS, "line number jid", requests.row(function(ctx, args)
    return recur.put_now(ctx, name(args, 3, "jid"))
  end) },
  { "recur_cancel", DRAINS, "line number jid...", requests.row(function(ctx, args)
    return recur.cancel(ctx, args, 3, names(args, 3, "jid"))
  end) },
}
