-- ids: checks of arguments that are neither plain names nor numbers.
local bounds = require("base.bounds")
local text = require("base.text")
local checks = require("doors.checks")
local M = {}

local OWN = "ql:q:" -- begins the throttle of a queue
local LARGEST = "18446744073709551615" -- of 64 bits, as text: no double holds it

-- The id of a throttle: a name, or `ql:q:` and the name of a queue.
function M.throttle(args, i)
  local given = args[i]
  if not given or sub(given, 1, #OWN) ~= OWN then return checks.name(args, i, "throttle") end
  local queue = sub(given, #OWN + 1)
  if #queue <= bounds.NAME and text.is_clean(queue) then return given end
  checks.expected("throttle", "ql:q: and the name of a queue", given)
end

-- Whether this is a whole number of 64 bits.
local function is_long(given)
  local size = given and find(given, "^%d+$") and #given or 0
  return size > 0 and (size < #LARGEST or size == #LARGEST and given <= LARGEST)
end

-- How far a scan got: "0", or what it returned before.
function M.cursor(args, i)
  if is_long(args[i]) then return args[i] end
  checks.expected("cursor", "0, or the cursor that the previous page returned", args[i])
end

-- The id of an entry of a stream, or "".
function M.entry(args, i, what)
  local given = args[i]
  local moment, number = match(given or "", "^(%d+)%-(%d+)$")
  if given == "" or is_long(moment) and is_long(number) and given ~= "0-0" then return given end
  checks.expected(what, "the id of a line, or nothing", given)
end

-- A score as the store wrote it.
function M.score(given)
  if text.is_score(given) then return given end
  checks.expected("score", "a number, as the previous page returned it", given)
end

local DUE = "^due:(.+)$" -- the score of a job that is due, among those that are ready

-- A score of a list, and the member it belongs to; "" for the beginning.
function M.place(args, i)
  local score = args[i]
  if score == "" then return "", "" end
  M.score(score and match(score, DUE) or score)
  if not args[i + 1] then checks.expected("cursor", "a score and a member") end
  return score, args[i + 1]
end

local MOST = { ["heartbeat"] = 86400, ["grace-period"] = 3600, ["jobs-history"] = 100000000000 }

-- Checks a setting: a number that makes no sense is refused, while a text that is
-- no number counts as not set.
function M.setting(args)
  local key, value = checks.name(args, 1, "key"), tonumber(args[2])
  local most = MOST[key:match("heartbeat$") or key]
  if not args[2] then checks.expected(key, "a value") end
  if value and most and not (value <= most and value >= (most == MOST.heartbeat and 0 or -most)) then
    checks.expected(key, "a number of seconds up to " .. most, args[2])
  end
  return key
end

return M
