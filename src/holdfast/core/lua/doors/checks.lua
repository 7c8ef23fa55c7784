-- checks: the limits that hold for every caller of the native door. They come
-- before anything is written.
local batch = require("base.batch")
local bounds = require("base.bounds")
local refuse = require("base.refuse")
local text = require("base.text")
local settings = require("nouns.setting.settings")
local M = {}

local MOST_KNOWN = 4000
local LONGEST_NAME, HIGHEST, WHOLE, CENTURY = bounds.NAME, bounds.PRIORITY, bounds.WHOLE, bounds.CENTURY
local LONGEST_BODY, LONGEST_SEEN, LONGEST_SHOWN = 67108864, 200, 80 -- bytes
-- How a caller will wait, and 4 times the level of what it understands.
local HIGHEST_MODE = 4 * bounds.LEVELS + 3

function M.bad(what) refuse.call("BAD_ARGUMENT", what) end

-- Refuses the value of an argument: what was expected, and what was given (nil: it is missing).
function M.expected(what, expectation, given)
  local got = given and 'got "' .. text.cut(tostring(given), LONGEST_SHOWN) .. '"' or "but it is missing"
  M.bad(("%s: expected %s, %s"):format(what, expectation, got))
end

-- The whole numbers that come again and again (priorities, limits), by their text.
local whole, wholes = {}, 0

-- The number that a text is as the store itself writes it, because the text itself may be
-- handed to the store, which knows no 0x10, 1e3, 007 and -0.
local function canonical(given)
  if given and (given == "0" or find(given, "^-?[1-9]%d*$")) then return tonumber(given) end
end

local function number_of(given)
  local value = canonical(given)
  if not value then return nil end
  if wholes >= MOST_KNOWN then whole, wholes = {}, 0 end
  whole[given], wholes = value, wholes + 1
  return value
end

function M.number(args, i, what, least, most)
  local given = args[i]
  local value = whole[given] or number_of(given)
  if value and value >= least and value <= most then return value end
  M.expected(what, "a whole number from " .. least .. " to " .. ("%.0f"):format(most), given)
end

-- A time or a length of time in ms.
function M.time(args, i, what)
  local value = canonical(args[i])
  if value and value >= 0 and value <= WHOLE then return value end
  M.expected(what, "a whole number from 0 to " .. ("%.0f"):format(WHOLE), args[i])
end

-- How long to wait or to keep, in ms.
function M.span(args, i, what) return M.number(args, i, what, 0, CENTURY) end

-- The length of a lease in ms, 0 for the queue's own.
function M.lease(args, i) return M.number(args, i, "lease", 0, bounds.LEASE) end

-- Any name: a jid, for one.
function M.name(args, i, what)
  local given = args[i]
  -- The first look is the quick one, for minted jids.
  if given and #given <= LONGEST_NAME and (find(given, "^%w+$") or text.is_clean(given)) then return given end
  M.expected(what, "1 to 200 bytes of UTF-8 without control characters", given)
end

-- A name that comes again and again (queue, klass, worker), looked at once.
local known, count = {}, 0
function M.word(args, i, what)
  local given = args[i]
  if known[given] then return given end
  M.name(args, i, what)
  if count >= MOST_KNOWN then known, count = {}, 0 end
  known[given], count = true, count + 1
  return given
end

-- Checks that args[first ...] are groups of `width`, at most `most` (512). Returns the last
-- index.
function M.groups(args, first, width, most)
  most = most or batch.LIMIT
  local last = #args
  local groups = (last - first + 1) / width
  if groups % 1 ~= 0 or groups < 0 then
    M.bad("expected groups of " .. width .. " arguments, got " .. last - first + 1 .. " arguments")
  end
  if groups > most then refuse.call("TOO_MANY", "at most " .. most .. " in one call") end
  return last
end

-- Checks the data with which a job is put: the one value that may be long, as long as `max-data` allows.
local served
function M.serve(ctx) served = ctx end
function M.data(args, i)
  local given = args[i]
  if given and #given <= settings.LEAST_DATA then return given end
  local most = settings.max_data(served)
  if not given or #given > most then
    refuse.call("DATA_TOO_LARGE", ("data has %d bytes, and max-data allows %d"):format(given and #given or 0, most))
  end
end

-- Checks what a worker reports of a job that it holds.
function M.body(args, i)
  local given = args[i]
  if not given or #given > LONGEST_BODY then M.bad("data and results have at most " .. LONGEST_BODY .. " bytes") end
end

-- Like `groups`, of which each ends with a body.
function M.with_bodies(args, first, width, most)
  local last = M.groups(args, first, width, most)
  for i = first + width - 1, last, width do M.body(args, i) end
  return last
end

-- Words for people, of at most `most` bytes.
M.SHORT = 4096
function M.text(args, i, what, most)
  local given = args[i]
  if given and #given <= most then return given end
  M.bad(("%s: expected at most %d bytes, %s"):format(what, most, given and "got " .. #given or "but it is missing"))
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
    local mode = whole[args[i + 1]] or number_of(args[i + 1])
    if not mode or mode < 0 or mode > HIGHEST_MODE then
      local modes = "0 (will not wait), 1 (will wait), 2 (woken) or 3 (found), and 4 more for each level"
      M.expected("mode", modes, args[i + 1])
    end
  end
  return last
end

-- Like `groups`, of (jid, token, data, keep, result).
function M.done(args, first)
  local last = M.groups(args, first, 5)
  for i = first + 3, last, 5 do
    if args[i] ~= "0" then M.number(args, i, "keep", 1, CENTURY) end
    M.body(args, i - 1)
    M.body(args, i + 1)
  end
  return last
end

-- Retries; "R/L" are budgets of a job's own: R retries, which pay for failures, and L losses. Returns both,
-- the second one nil where retries pay for everything.
local budgets, budgets_known = {}, 0
function M.retries(args, i)
  local given = args[i]
  local both = budgets[given]
  if both then return both[1], both[2] end
  if not given or whole[given] or not find(given, "/", 1, true) then
    return M.number(args, i, "retries", 0, bounds.RETRIES), nil
  end
  both = { match(given, "^(%d*)/(.*)$") }
  both[1] = M.number(both, 1, "retries", 0, bounds.RETRIES)
  both[2] = M.number(both, 2, "losses", 0, bounds.LOSSES)
  if budgets_known >= MOST_KNOWN then budgets, budgets_known = {}, 0 end
  budgets[given], budgets_known = both, budgets_known + 1
  return both[1], both[2]
end

-- Where a job goes, in args[i …]: queue, priority, retries, delay in ms, losses.
function M.placing(args, i)
  local retries, losses = M.retries(args, i + 2)
  return M.word(args, i, "queue"), M.number(args, i + 1, "priority", -HIGHEST, HIGHEST),
    retries, M.number(args, i + 3, "delay", 0, CENTURY), losses
end

-- Checks that args[first ...] are at most `most` (512) names. Returns the last index.
function M.names(args, first, what, most)
  local last = M.groups(args, first, 1, most)
  for i = first, last do M.name(args, i, what) end
  return last
end

-- args[i] is the value that the caller has seen and wants to change, missing for any value; `now` is the present one. A
-- call that is repeated finds the value that it wrote: `wanted`, if it is given.
function M.seen(args, i, what, now, wanted)
  local seen = args[i]
  if not seen or seen == now or now == wanted then return end
  local quoted = '"%s"'
  refuse.call("WRONG_STATE", ("%s was changed meanwhile: it is %s now, not %s"):format(what,
    quoted:format(text.cut(now, LONGEST_SEEN)), quoted:format(text.cut(seen, LONGEST_SEEN))))
end

return M
