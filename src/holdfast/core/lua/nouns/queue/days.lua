-- days: a queue's day begins. The one before it is folded and added to what is counted
-- for ever; days that are too old are dropped.
local keys = require("base.keys")
local series = require("nouns.recurrence.series")
local settings = require("nouns.setting.settings")
local tally = require("nouns.queue.tally")
local M = {}

local MOST = 512 -- days dropped at once
local DAY = 86400 -- seconds

-- How much a day has so far: popped, completed, failed, lost.
function M.so_far(queue, day)
  local found = call("HMGET", queue.stats .. day, "wait", "run", "failures", "retries")
  return series.count(found[1]) + call("STRLEN", queue.wait_log .. day) / 8,
    series.count(found[2]) + call("STRLEN", queue.run_log .. day) / 8, tonumber(found[3] or 0), tonumber(found[4] or 0)
end

local function close(ctx, queue, day)
  series.fold(queue.wait_log .. day, queue.stats .. day, "wait")
  series.fold(queue.run_log .. day, queue.stats .. day, "run")
  local popped, completed, failed, lost = M.so_far(queue, day)
  tally.count(ctx, queue, "popped", popped)
  tally.count(ctx, queue, "completed", completed)
  tally.count(ctx, queue, "failed", failed)
  tally.count(ctx, queue, "lost", lost)
end

-- Drops the days before the oldest one kept, from `first` on. Returns the first one left.
local function drop(ctx, queue, first, today)
  local last = math.min(today - settings.number(ctx, settings.STATS_DAYS) - 1, first + MOST - 1)
  local names = {}
  for day = first, last do
    local n = #names
    names[n + 1], names[n + 2], names[n + 3] = queue.stats .. day, queue.wait_log .. day, queue.run_log .. day
  end
  if names[1] then call("UNLINK", unpack_(names)) end
  return math.max(first, last + 1)
end

-- Where days are not closed one after the other, for the caller brings the time, each key of
-- one is dropped by the store some days after it was made.
function M.keep(ctx, key)
  if not ctx.bounds.tallies then call("EXPIRE", key, settings.number(ctx, settings.STATS_DAYS) * DAY) end
end

-- All that is counted of a queue goes after `seconds`.
function M.expire(queue, seconds)
  local found = call("HMGET", queue.tallies, "first", "day")
  for day = tonumber(found[1] or 1), tonumber(found[2] or 0) do
    call("EXPIRE", queue.stats .. day, seconds)
    call("EXPIRE", queue.wait_log .. day, seconds)
    call("EXPIRE", queue.run_log .. day, seconds)
  end
  call("EXPIRE", queue.tallies, seconds)
  call("EXPIRE", queue.minutes, seconds)
end

-- The first sample that a queue gets in this call is of another day than the last one
-- known here. A clock that went back does not open a day again that was closed.
function M.begin(ctx, queue, day)
  local booked = day
  if ctx.bounds.tallies then
    local found = call("HMGET", queue.tallies, "day", "first")
    local last, first = tonumber(found[1] or day), tonumber(found[2] or day)
    if last > day then booked = last end
    if last < day then
      close(ctx, queue, last)
      first = drop(ctx, queue, first, day)
    end
    call("HSET", queue.tallies, "day", booked, "first", first)
  end
  keys.on_day(queue, day, booked)
end

-- A log or a count of a day begins. If it is not the day that the data have open, they are others than those of which
-- this was noted: an earlier copy was restored under the same root. Returns whether another day was begun.
function M.is_another(ctx, queue, day)
  if not ctx.bounds.tallies then return false end
  if tonumber(call("HGET", queue.tallies, "day") or nil) == queue.booked then return false end
  M.begin(ctx, queue, day)
  return true
end

return M
