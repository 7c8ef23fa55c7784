-- native_limits: what a native root takes of the commands of the reqless protocol.
--
-- Their translations look at what that protocol refuses. This file says what each argument
-- is, so that native names, numbers, lists and data keep their limits: checked before the
-- command runs. What is missing or unreadable is left to the translation, which says so.
local late = require("base.late")
local checks = require("doors.checks")
local ids = require("doors.ids")
local dependency = require("nouns.dependency")
local words = require("doors.protocol.words")
local M = {}

local DEEPEST, LONGEST_NOTE, LONGEST_ARGUMENT, MOST_BACKLOG = 100, 16384, 256, 1000000
local LONGEST = 3162240000 -- a hundred years in s
local LONGEST_TEMPLATE = 180 -- bytes: its jobs are named after it, with a number
local MOST_COUNT, MOST_UNFAILED, MOST_LIMIT = 512, 200, 4294967295
local MOST = { ["job.timeout"] = 128 } -- arguments of what costs more each
local bad, name, number, text = checks.bad, checks.name, checks.number, checks.text

local decode, find, gmatch, gsub
late.bind(function() decode, find, gmatch, gsub = cjson.decode, string.find, string.gmatch, string.gsub end)

-- Whether JSON nests deeper than it may. Few brackets need no closer look.
local function is_deep(given)
  local count = 0
  for _ in gmatch(given, "[%[{]") do
    count = count + 1
    if count > DEEPEST then break end
  end
  if count <= DEEPEST then return false end
  local depth = 0
  for bracket in gmatch(gsub(gsub(given, "\\.", ""), '"[^"]*"', ""), "[%[{%]}]") do
    depth = depth + (find(bracket, "[%[{]") and 1 or -1)
    if depth > DEEPEST then return true end
  end
  return false
end

local function data(args, i)
  checks.body(args, i)
  if is_deep(args[i]) then bad("data nests deeper than " .. DEEPEST) end
end

local function seconds(args, i, what)
  local value = words.finite(args[i])
  if value and (value > LONGEST or value < -LONGEST) then bad(what .. " is more than a hundred years") end
end

-- A JSON list of names.
local function list(args, i, what, most, check)
  local ok, found = pcall(decode, args[i])
  if not ok or type(found) ~= "table" then return end
  if #found > most then bad("at most " .. most .. " " .. what .. " a job") end
  for n = 1, #found do
    if type(found[n]) == "string" then check(found, n, what) end
  end
end

local KINDS = {
  data = data, seconds = seconds,
  any = function() end,
  short = function(args, i) text(args, i, "an argument", LONGEST_ARGUMENT) end,
  pattern = function(args, i) text(args, i, "a pattern", LONGEST_NOTE) end,
  note = function(args, i)
    text(args, i, "data of a line", LONGEST_NOTE)
    data(args, i)
  end,
  message = function(args, i) text(args, i, "message", checks.SHORT) end,
  throttle = function(args, i) ids.throttle(args, i) end,
  template = function(args, i)
    if #name(args, i, "jid") > LONGEST_TEMPLATE then bad("the jid of a recurring job has at most 180 bytes") end
  end,
  value = function(args, i) ids.setting({ args[i - 1], args[i] }) end,
  count = function(args, i) number(args, i, "limit", 0, MOST_COUNT) end,
  unfailed = function(args, i) number(args, i, "limit", -MOST_UNFAILED, MOST_UNFAILED) end,
  maximum = function(args, i) number(args, i, "maximum", 0, MOST_LIMIT) end,
  priority = function(args, i) number(args, i, "priority", -checks.HIGHEST, checks.HIGHEST) end,
  retries = function(args, i) number(args, i, "retries", 0, checks.MOST_RETRIES) end,
  backlog = function(args, i) number(args, i, "backlog", 0, MOST_BACKLOG) end,
  tags = function(args, i) list(args, i, "tags", 64, name) end,
  throttles = function(args, i) list(args, i, "throttles", 16, ids.throttle) end,
  depends = function(args, i) list(args, i, "depends", dependency.MOST, name) end,
}
-- The keys of pairs that are looked at.
local PAIRS = {
  priority = "priority", retries = "retries", backlog = "backlog", tags = "tags", throttles = "throttles",
  depends = "depends", delay = "seconds", interval = "seconds", data = "data", klass = "klass", queue = "queue",
  next = "queue",
}

-- What the arguments of a command are; those of others are short texts. A kind that is
-- not in KINDS is a name.
local PUT = "worker queue jid klass data seconds pairs"
local ARGUMENTS = {
  ["queue.put"] = PUT, ["job.requeue"] = PUT, ["queue.unfail"] = "queue group unfailed",
  ["queue.pop"] = "queue worker count", ["queue.peek"] = "queue any count",
  ["job.heartbeat"] = "jid worker data", ["job.complete"] = "jid worker queue data any...",
  ["job.completeAndRequeue"] = "jid worker queue data advance",
  ["job.fail"] = "jid worker group message data", ["job.retry"] = "jid queue worker seconds group message",
  ["job.timeout"] = "jid...", ["job.cancel"] = "jid...", ["job.getMulti"] = "jid...",
  ["job.setPriority"] = "jid priority", ["job.log"] = "jid line note",
  ["job.addTag"] = "jid tag...", ["job.removeTag"] = "jid tag...",
  ["job.addDependency"] = "jid jid...", ["job.removeDependency"] = "jid jid...",
  ["job.track"] = "jid", ["job.untrack"] = "jid",
  ["queue.recurAtInterval"] = "queue template klass data seconds seconds pairs",
  ["recurringJob.update"] = "jid pairs", ["recurringJob.cancel"] = "jid",
  ["recurringJob.addTag"] = "jid tag...", ["recurringJob.removeTag"] = "jid tag...",
  ["queue.pause"] = "queue...", ["queue.unpause"] = "queue...", ["queue.forget"] = "queue...",
  ["worker.forget"] = "worker...", ["config.set"] = "key value", ["config.unset"] = "key",
  ["throttle.set"] = "throttle maximum seconds", ["throttle.delete"] = "throttle",
  ["throttle.release"] = "throttle jid...", ["queue.throttle.set"] = "queue maximum",
  ["queueIdentifierPatterns.setAll"] = "pattern...", ["queuePriorityPatterns.setAll"] = "pattern...",
}

local function look_at(kind, args, i)
  local check = KINDS[kind]
  if check then return check(args, i, kind) end
  name(args, i, kind)
end

local function look_at_pairs(args, first)
  for i = first, #args - 1, 2 do
    local kind = PAIRS[args[i]]
    if kind then look_at(kind, args, i + 1) end
  end
end

-- A next queue and pairs, or pairs of which one is the next queue.
KINDS.advance = function(args, i)
  name(args, i, "next queue")
  look_at_pairs(args, (#args - i) % 2 == 0 and i + 1 or i)
end

-- Refuses what a native root does not take. The arguments of the command begin at args[3].
function M.check(command, args)
  local i, last = 3, checks.groups(args, 3, 1, MOST[command] or MOST_COUNT)
  for kind, more in gmatch(ARGUMENTS[command] or "short...", "(%a+)(%.*)") do
    if kind == "pairs" then return look_at_pairs(args, i) end
    repeat
      if i > last then return end
      look_at(kind, args, i)
      i = i + 1
    until more == ""
  end
end

return M
