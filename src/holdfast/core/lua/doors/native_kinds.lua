-- native_kinds: the kinds of words that commands of the reqless protocol are made of, and what
-- a native root takes of each. What is unreadable is left to the command, which refuses it.
local bounds = require("base.bounds")
local checks = require("doors.checks")
local ids = require("doors.ids")
local dependency = require("nouns.dependency.dependency")
local arguments = require("doors.protocol.arguments")
local M = {}

local DEEPEST, LONGEST_NOTE, LONGEST_ARGUMENT = 100, 16384, 256
local MOST_PATTERNS = 65536 -- bytes
local LONGEST = bounds.CENTURY / 1000 -- s
local LONGEST_TEMPLATE = 180 -- bytes: its jobs are named after it, with a number
local MOST_COUNT, MOST_UNFAILED, MOST_LIMIT = bounds.BATCH, 200, bounds.MAXIMUM
local bad, name, number, text = checks.bad, checks.name, checks.number, checks.text

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
  checks.data(args, i)
  if is_deep(args[i]) then bad("data nests deeper than " .. DEEPEST) end
end

local function seconds(args, i, what)
  local value = arguments.finite(args[i])
  if value and (value > LONGEST or value < -LONGEST) then bad(what .. " is more than a hundred years") end
end

local function interval(args, i)
  local value = arguments.finite(args[i])
  if value and value > 0 and value < 0.001 then bad("interval is less than a millisecond") end
  seconds(args, i, "interval")
end

-- Patterns are the only texts the core looks into, so all of them together are short.
local function patterns(args, first)
  local size = 0
  for i = first, #args do size = size + #args[i] end
  if size > MOST_PATTERNS then bad("patterns have at most " .. MOST_PATTERNS .. " bytes in all") end
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

M.KINDS = {
  data = data, seconds = seconds, interval = interval,
  any = function() end,
  whole = function(args, i)
    local value = arguments.finite(args[i])
    if value and (value % 1 ~= 0 or math.abs(value) > MOST_LIMIT) then bad("offset and limit are whole numbers") end
  end,
  short = function(args, i) text(args, i, "an argument", LONGEST_ARGUMENT) end,
  patterns = patterns,
  identifiers = function(args, first)
    patterns(args, first)
    for i = first, #args, 2 do name(args, i, "identifier") end
  end,
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
  unfailed = function(args, i)
    local value = arguments.finite(args[i])
    if not value or value > 0 then number(args, i, "limit", 1, MOST_UNFAILED) end
  end,
  maximum = function(args, i) number(args, i, "maximum", 0, MOST_LIMIT) end,
  priority = function(args, i) number(args, i, "priority", -bounds.PRIORITY, bounds.PRIORITY) end,
  retries = function(args, i) number(args, i, "retries", 0, bounds.RETRIES) end,
  backlog = function(args, i) number(args, i, "backlog", 0, bounds.BACKLOG) end,
  tags = function(args, i) list(args, i, "tags", 64, name) end,
  throttles = function(args, i) list(args, i, "throttles", 16, ids.throttle) end,
  depends = function(args, i) list(args, i, "depends", dependency.MOST, name) end,
}

-- A kind that is not among them is a name.
function M.look_at(kind, args, i)
  local check = M.KINDS[kind]
  if check then return check(args, i, kind) end
  name(args, i, kind)
end

return M
