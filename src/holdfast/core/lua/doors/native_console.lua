-- native_console: the native door's rows for operators: searches, and changes of many jobs.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local bounds = require("base.bounds")
local checks = require("doors.checks")
local ids = require("doors.ids")
local requests = require("doors.requests")
local operation = require("nouns.operation.operation")
local act = require("verbs.act")
local scan = require("verbs.scan")

local MOST, MOST_CHANGED, MOST_SHOWN, LONGEST_SPEC = bounds.BATCH, 256, 64, 16384
local MOST_KEPT = 131072 -- bytes of a reply that is kept for a repeat: all replies to an act are shorter
local DIGEST = 40 -- letters of a SHA-1
local NO_JOBS = {
  recurring = true, workers = true, versions = true, queues = true, topics = true, queued = true, reserved = true,
  declared = true,
}
local NAMELESS = { completed = true, tracked = true }
local STATES = { done = true, failed = true, stopped = true, undone = true }
local DRAINS, READS = { "allow-oom" }, { "no-writes" }
local bad, name, names, number, optional, text = checks.bad, checks.name, checks.names, checks.number, checks.optional,
  checks.text

-- How the value that comes with an action is checked; all others have none.
local VALUES = {
  retry = function(value) optional({ value }, 1, "queue") end,
  fail = function(value) optional({ value }, 1, "queue") end,
  move = function(value) optional({ value }, 1, "queue") end,
  priority = function(value) number({ value }, 1, "priority", -bounds.PRIORITY, bounds.PRIORITY) end,
  retries = function(value) number({ value }, 1, "retries", 0, bounds.RETRIES) end,
  delay = function(value) checks.span({ value }, 1, "delay") end,
  data = function(value)
    if #value <= DIGEST or not find(sub(value, 1, DIGEST), "^%x+$") then bad("the SHA-1 of the old data is missing") end
    checks.data({ sub(value, DIGEST + 1) }, 1)
  end,
  tag = function(value)
    local found = {}
    for one in gmatch(text({ value }, 1, "tags", checks.SHORT), "[^\n]+") do found[#found + 1] = one end
    if #found == 0 then bad("a tag is missing") end
    names(found, 1, "tag", 64)
  end,
}
VALUES.untag = VALUES.tag
VALUES["move-back"] = function(value)
  local queue = value and match(value, "^%d+ %d+ (.*)$")
  if not queue then bad("what the job was before is missing") end
  name({ queue }, 1, "queue")
end

-- Checks the value of each job; "" stands for the common one.
local function values(action, common, args, first, last)
  local check = VALUES[action]
  for i = first, last, 2 do
    local value = args[i + 1] ~= "" and args[i + 1] or common
    name(args, i, "jid")
    if check then
      check(value)
    elseif value ~= "" then
      bad(action .. " has no value")
    end
  end
end

-- The operation that a change belongs to, in args[i …]: id ("" for none), runner, length of its lease, cursor, looked,
-- matched.
local function operation_of(args, i)
  local op = {
    id = optional(args, i, "operation"), runner = optional(args, i + 1, "runner"),
    length = number(args, i + 2, "length", 0, 3600000), cursor = text(args, i + 3, "cursor", checks.SHORT),
    looked = number(args, i + 4, "looked", 0, 1000000000), matched = number(args, i + 5, "matched", 0, 1000000000),
  }
  return op.id ~= "" and op or nil
end

local MODES = {
  start = function(ctx, args)
    operation.start(ctx, name(args, 3, "operation"), name(args, 4, "runner"), number(args, 5, "length", 1, 3600000),
      text(args, 6, "spec", LONGEST_SPEC))
    return 1
  end,
  take = function(ctx, args)
    operation.take(ctx, name(args, 3, "operation"), name(args, 4, "runner"), number(args, 5, "length", 1, 3600000))
    return 1
  end,
  finish = function(ctx, args)
    if not STATES[args[6]] then checks.expected("state", "done, failed, stopped or undone", args[6]) end
    if args[4] ~= "" then operation.check(ctx, name(args, 3, "operation"), name(args, 4, "runner")) end
    return operation.finish(ctx, name(args, 3, "operation"), args[6])
  end,
}

return {
  { "scan", READS, "set name after_score after_member count wants", function(ctx, args)
    local set = args[1]
    if not set or NO_JOBS[set] or not scan.is_known(set) then
      checks.expected("set", "the name of a set of jobs", set)
    end
    local owner = NAMELESS[set] and "" or name(args, 2, "name")
    local score, member = ids.place(args, 3)
    if (set == "completed" or set == "flow") and score ~= "" then checks.time(args, 3, "place") end
    local wants = {}
    for letter in gmatch(text(args, 6, "wants", 16), ".") do wants[letter] = true end
    return scan.run(ctx, set, owner, score, member, number(args, 5, "count", 0, MOST), wants)
  end },
  { "act", DRAINS, "line number action common who operation runner length cursor looked matched (jid value)...",
    requests.row(function(ctx, args)
      local action, common, who = args[3], args[4] or "", optional(args, 5, "who")
      if not act.ACTIONS[action] then checks.expected("action", "the name of an action", action) end
      local op, last = operation_of(args, 6), checks.groups(args, 12, 2, MOST_CHANGED)
      values(action, common, args, 12, last)
      return act.run(ctx, action, common, who, op, args, 12, last)
    end, MOST_KEPT) },
  { "operation_set", DRAINS, "line number operation runner length spec mode", requests.row(function(ctx, args)
    local mode = MODES[args[7]] or checks.expected("mode", "start, take or finish", args[7])
    return mode(ctx, args)
  end) },
  { "operations", READS, "offset count", function(ctx, args)
    return operation.list(ctx, checks.time(args, 1, "offset"), number(args, 2, "count", 0, MOST_SHOWN))
  end },
  { "operation_get", READS, "operation offset count", function(ctx, args)
    return operation.get(ctx, name(args, 1, "operation"), checks.time(args, 2, "offset"),
      number(args, 3, "count", 0, MOST_SHOWN))
  end },
}
