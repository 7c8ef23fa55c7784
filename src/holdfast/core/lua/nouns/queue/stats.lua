-- stats: how long jobs waited and ran, per queue and UTC day.
--
-- A sample is eight bytes appended to the day's log; every 512 the log is folded
-- into the day's hash.
local root = require("base.root")
local days = require("nouns.queue.days")
local series = require("nouns.recurrence.series")
local M = {}

local FULL = 4096 -- bytes of a log that is folded

local function day_of(now) return floor(now / root.DAY) end

local function fold(ctx, queue, log, name)
  local key = queue.stats .. queue.booked
  series.fold(log, key, name)
  days.keep(ctx, key)
end

function M.waited(ctx, queue, samples)
  local day = day_of(ctx.now)
  if queue.day ~= day then days.begin(ctx, queue, day) end
  local log = queue.wait_today
  local size = call("APPEND", log, samples)
  if size == #samples then
    days.keep(ctx, log)
    if days.is_another(ctx, queue, day) then
      call("UNLINK", log)
      return M.waited(ctx, queue, samples)
    end
  end
  if size >= FULL then fold(ctx, queue, log, "wait") end
end

function M.ran(ctx, queue, samples)
  local day = day_of(ctx.now)
  if queue.day ~= day then days.begin(ctx, queue, day) end
  local log = queue.run_today
  local size = call("APPEND", log, samples)
  if size == #samples then
    days.keep(ctx, log)
    if days.is_another(ctx, queue, day) then
      call("UNLINK", log)
      return M.ran(ctx, queue, samples)
    end
  end
  if size >= FULL then fold(ctx, queue, log, "run") end
end

-- Counts an event of today: `failures`, `failed`, `retries` (lost leases) or `retried`.
function M.count(ctx, queue, what)
  local day = day_of(ctx.now)
  if queue.day ~= day then days.begin(ctx, queue, day) end
  local key = queue.stats .. queue.booked
  if call("HINCRBY", key, what, 1) > 1 then return end
  days.keep(ctx, key)
  if days.is_another(ctx, queue, day) then
    call("HDEL", key, what)
    return M.count(ctx, queue, what)
  end
end

-- Subtracts `some` (nil: one) from the counter of the day of `when`.
function M.uncount(queue, when, what, some)
  local key = queue.stats .. day_of(when)
  local by = min(some or 1, tonumber(call("HGET", key, what) or 0))
  if by >= 1 then call("HINCRBY", key, what, -by) end
end

-- Counts a job as failed again, if the failures of that day are still kept.
function M.recount(queue, when)
  local key = queue.stats .. day_of(when)
  if tonumber(call("HGET", key, "failures") or 0) > 0 then call("HINCRBY", key, "failed", 1) end
end

function M.of_day(queue, when)
  local day = day_of(when)
  local key = queue.stats .. day
  local counters = call("HMGET", key, "retries", "failed", "failures", "retried")
  return counters, series.look(queue.wait_log .. day, key, "wait"), series.look(queue.run_log .. day, key, "run")
end

return M
