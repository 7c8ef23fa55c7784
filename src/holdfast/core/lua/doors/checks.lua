-- checks: the limits that hold for every caller of the native door. They come
-- before anything is written.
local late = require("base.late")
local batch = require("base.batch")
local refuse = require("base.refuse")
local M = {}

local LONGEST_NAME, MOST_KNOWN = 200, 4000
local WHOLE = 9007199254740991 -- the largest whole number a double is sure of
local LONGEST = 3162240000000 -- a hundred years in ms: what is later does not fit into a record
local LONGEST_LEASE = 86400000
local MODES = { ["0"] = true, ["1"] = true, ["2"] = true }

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

-- How long to wait or to keep, in ms.
function M.span(args, i, what) return M.number(args, i, what, 0, LONGEST) end

-- The length of a lease in ms, 0 for the queue's own.
function M.lease(args, i) return M.number(args, i, "lease", 0, LONGEST_LEASE) end

-- Any name: a jid, for one.
function M.name(args, i, what)
  local text = args[i]
  -- Anchored: looking for a control character anywhere takes half as long again.
  if text and #text <= LONGEST_NAME and find(text, "^%C+$") then return text end
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

-- A name that may be left out ("").
function M.optional(args, i, what)
  if args[i] == "" then return "" end
  return M.word(args, i, what)
end

-- Checks that args[first … last] are pairs of a queue and how the caller will
-- wait. Returns `last`.
function M.queues(args, first, last)
  for i = first, last, 2 do
    M.word(args, i, "queue")
    if not MODES[args[i + 1]] then M.bad("mode is 0 (will not wait), 1 (will wait) or 2 (woken)") end
  end
  return last
end

-- Checks that args[first ...] are (jid, token, data, keep, result) groups. Returns
-- the last index.
function M.done(args, first)
  local last = M.groups(args, first, 5)
  for i = first + 3, last, 5 do
    if args[i] ~= "0" then M.number(args, i, "keep", 1, LONGEST) end
  end
  return last
end

local MOST = { ["heartbeat"] = 86400, ["grace-period"] = 3600, ["jobs-history"] = 100000000000 }

-- Checks a setting: a number that makes no sense is refused, while a text that is
-- no number counts as not set.
function M.setting(args)
  local key, value = M.name(args, 1, "key"), tonumber(args[2])
  local most = MOST[key:match("heartbeat$") or key]
  if not args[2] then M.bad("a setting needs a value") end
  if value and most and not (value <= most and value >= (most == MOST.heartbeat and 0 or -most)) then
    M.bad(key .. " is not a number of seconds up to " .. most)
  end
  return key
end

-- Checks that args[first ...] are at most 512 names. Returns the last index.
function M.names(args, first, what)
  local last = M.groups(args, first, 1)
  for i = first, last do M.name(args, i, what) end
  return last
end

return M
