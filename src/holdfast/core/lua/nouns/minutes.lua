-- minutes: one line a minute of all that is counted for ever, for charts.
--
-- A line is the minute and eight totals, so what happened between two lines is their
-- difference, and a missed minute smears over its neighbours. The newest lines are kept
-- one a minute, those before them one for ten minutes.
local root = require("base.root")
local days = require("nouns.days")
local queues = require("nouns.queue")
local tally = require("nouns.tally")
local M = {}

local FINE, COARSE = 180, 1008 -- lines
local LINE = "<I4I6I6I6I6I6I6I6I6"
local NOTED, CLOSED = 2, 12 -- what a line, and closing a day with its first sample, take of a pop's chores

-- Put, popped, completed, failed, retried, lost, timed out and cancelled since the queue
-- was first used.
function M.totals(ctx, queue)
  local t = tally.read(queue)
  local popped, completed, failed, lost = days.so_far(queue, t.day > 0 and t.day or floor(ctx.now / root.DAY))
  return queues.made_ready(queue) - t.again + t.later, t.popped + popped, t.completed + completed, t.failed + failed,
    t.retried, t.lost + lost, t["timed-out"], t.cancelled
end

-- The line that has become older than the fine ones stays if it is the first of its ten
-- minutes.
local function thin(queue, length)
  if length <= FINE then return end
  local pair = call("LRANGE", queue.minutes, -FINE - 2, -FINE - 1)
  if pair[2] and floor(unpack_bytes("<I4", pair[1]) / 10) == floor(unpack_bytes("<I4", pair[2]) / 10) then
    call("LREM", queue.minutes, -1, pair[2])
  elseif length > FINE + COARSE then
    call("LPOP", queue.minutes)
  end
end

-- Writes the line of this minute, unless it is there. A queue that nothing was ever put
-- into has none.
function M.note(ctx, queue)
  local minute = floor(ctx.now / root.MINUTE)
  queue.minute_ends = (minute + 1) * root.MINUTE
  local last = call("LINDEX", queue.minutes, -1)
  if last and unpack_bytes("<I4", last) >= minute then return end
  if not last and queues.made_ready(queue) == 0 then return end
  thin(queue, call("RPUSH", queue.minutes, pack(LINE, minute, M.totals(ctx, queue))))
end

-- The same for a pop, which has `chores` left. Returns whether it may continue with this
-- queue: its next sample may be the first of a day.
function M.keep(ctx, queue, grant)
  if grant.chores < NOTED then return false end
  M.note(ctx, queue)
  grant.chores = grant.chores - NOTED
  local today, day = floor(ctx.now / root.DAY), queue.day
  if day ~= today then day = tally.read(queue).day end -- not known here
  if day > 0 and day < today then grant.chores = grant.chores - CLOSED end
  return true
end

-- Lines from `since` on, each its minute in ms and the totals, and one for now.
function M.since(ctx, queue, since)
  local rows = {}
  for _, line in ipairs(call("LRANGE", queue.minutes, 0, -1)) do
    local row = { unpack_bytes(LINE, line) }
    row[1], row[10] = row[1] * root.MINUTE, nil
    if row[1] >= since then rows[#rows + 1] = row end
  end
  rows[#rows + 1] = { ctx.now, M.totals(ctx, queue) }
  return rows
end

return M
