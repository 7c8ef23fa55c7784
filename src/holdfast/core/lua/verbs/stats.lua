-- stats: what happened in a queue, by day (with what is not folded yet) and by minute.
local keys = require("base.keys")
local minutes = require("nouns.queue.minutes")
local stats = require("nouns.queue.stats")
local M = {}

local BUCKETS = 148

local function series(reply, found)
  local n, buckets, fine = #reply, {}, {}
  for i = 1, BUCKETS do buckets[i] = found.buckets[i - 1] or 0 end
  for index, count in pairs(found.fine) do fine[#fine + 1], fine[#fine + 2] = index, count end
  local deviation = found.count > 1 and math.sqrt(found.spread / (found.count - 1)) or 0
  reply[n + 1], reply[n + 2], reply[n + 3] = found.count, format("%.17g", found.mean), format("%.17g", deviation)
  reply[n + 4], reply[n + 5] = buckets, fine
end

-- `day` is any ms of the day, 0 for today.
function M.run(ctx, name, day) return M.of(ctx, name, day == 0 and ctx.now or day) end

-- The same for any ms, even 0.
function M.of(ctx, name, when)
  local counters, wait, run = stats.of_day(keys.of_queue(ctx, name), when)
  local reply = {}
  for i = 1, 3 do reply[i] = tonumber(counters[i] or 0) end
  series(reply, wait)
  series(reply, run)
  reply[#reply + 1] = tonumber(counters[4] or 0)
  return reply
end

-- Lines from `since` (ms) on, each a moment in ms with put, popped, completed, failed,
-- retried, lost, timed out and cancelled since the queue was first used; the last is now.
function M.minutes(ctx, name, since) return minutes.since(ctx, keys.of_queue(ctx, name), since) end

-- Notes the minute of each queue, unless that was done. Returns how many queues.
function M.tick(ctx, args, first, last)
  for i = first, last do minutes.note(ctx, keys.of_queue(ctx, args[i])) end
  return last - first + 1
end

return M
