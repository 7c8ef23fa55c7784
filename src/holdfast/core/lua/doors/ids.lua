-- ids: words that name something and are no plain names.
local late = require("base.late")
local text = require("base.text")
local checks = require("doors.checks")
local M = {}

local OWN = "ql:q:" -- begins the throttle of a queue
local LONGEST_CURSOR = 20

local find, sub
late.bind(function() find, sub = string.find, string.sub end)

-- The id of a throttle: a name, or `ql:q:` and the name of a queue.
function M.throttle(args, i)
  local given = args[i]
  if not given or sub(given, 1, #OWN) ~= OWN then return checks.name(args, i, "throttle") end
  local queue = sub(given, #OWN + 1)
  if #queue <= checks.LONGEST_NAME and text.is_clean(queue) then return given end
  checks.bad("throttle is not ql:q: and the name of a queue")
end

-- How far a scan got: "0", or what it answered before.
function M.cursor(args, i)
  local given = args[i]
  if given and #given <= LONGEST_CURSOR and find(given, "^%d+$") then return given end
  checks.bad("cursor is not 0 or one that this listing gave")
end

return M
