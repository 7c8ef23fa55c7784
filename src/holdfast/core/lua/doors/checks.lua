-- checks: the limits that hold for every caller of the native door. They come
-- before anything is written.
local late = require("base.late")
local batch = require("base.batch")
local refuse = require("base.refuse")
local M = {}

local LONGEST_NAME, MOST_KNOWN = 200, 4000
local WHOLE = 9007199254740991 -- the largest whole number a double is sure of

local find
late.bind(function() find = string.find end)

function M.bad(what) refuse.call("BAD_ARGUMENT", what) end

-- The whole numbers that come again and again (priorities, limits), by their text.
local whole, wholes = {}, 0
local function number_of(text)
  local value = tonumber(text)
  if not value or value % 1 ~= 0 then return nil end
  if wholes >= MOST_KNOWN then whole, wholes = {}, 0 end
  whole[text], wholes = value, wholes + 1
  return value
end

function M.number(args, i, what, least, most)
  local text = args[i]
  local value = whole[text] or number_of(text)
  if value and value >= least and value <= most then return value end
  M.bad(what .. " is not a whole number from " .. least .. " to " .. ("%.0f"):format(most))
end

-- A time or a length of time in ms.
function M.time(args, i, what)
  local value = tonumber(args[i])
  if value and value >= 0 and value <= WHOLE and value % 1 == 0 then return value end
  M.bad(what .. " is not a whole number of milliseconds")
end

-- Any name: a jid, for one.
function M.name(args, i, what)
  local text = args[i]
  if text and #text > 0 and #text <= LONGEST_NAME and not find(text, "%c") then return text end
  M.bad(what .. " is not a name of 1 to 200 bytes without control characters")
end

-- A name that comes again and again (queue, klass, worker), looked at once.
local known, count = {}, 0
function M.word(args, i, what)
  local text = args[i]
  if known[text] then return text end
  M.name(args, i, what)
  if count >= MOST_KNOWN then known, count = {}, 0 end
  known[text], count = true, count + 1
  return text
end

-- Checks that args[first ...] are groups of `width`, at most 512. Returns the last index.
function M.groups(args, first, width)
  local last = #args
  local groups = (last - first + 1) / width
  if groups % 1 ~= 0 or groups < 0 then M.bad("a group of " .. width .. " arguments is not whole") end
  if groups > batch.LIMIT then refuse.call("TOO_MANY", "at most " .. batch.LIMIT .. " in one call") end
  return last
end

-- Checks that args[first ...] are at most 512 names. Returns the last index.
function M.names(args, first, what)
  local last = M.groups(args, first, 1)
  for i = first, last do M.name(args, i, what) end
  return last
end

return M
