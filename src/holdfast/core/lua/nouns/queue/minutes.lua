-- minutes: one line a minute of all that is counted for ever, for charts.
--
-- A line is the minute, eight totals and how many jobs wait, so what happened between two lines is
-- their difference. The newest lines are kept one a minute, those before them one for ten minutes.
-- Pops write them. Where there are none, a round does, which is continued by any worker that
-- reports and any web page that is open. It leaves out a queue in which nothing changed since its last
-- line; when something does, a copy of that line for the minute of the last round comes before
-- the new one.
local keys = require("base.keys")
local root = require("base.root")
local days = require("nouns.queue.days")
local queues = require("nouns.queue.queue")
local tally = require("nouns.queue.tally")
local M = {}

local FINE, COARSE = 180, 1008 -- lines
local LINE, WAITING = "<I4I6I6I6I6I6I6I6I6", "<I6" -- lines of before 0.3 end without the last number
local TOTALS = 1 + 4 -- where they begin
local PIECE = 128 -- queues that one call looks at
local NOTED, CLOSED = 2, 12 -- what a line, and closing a day with its first sample, take of a pop's upkeep

-- Put, popped, completed, failed, retried, lost, timed out and cancelled since the queue
-- was first used.
function M.totals(ctx, queue)
  local t = tally.read(queue)
  local popped, completed, failed, lost = days.so_far(queue, t.day > 0 and t.day or floor(ctx.now / root.DAY))
  return queues.made_ready(queue) - t.again + t.later, t.popped + popped, t.completed + completed, t.failed + failed,
    t.retried, t.lost + lost, t["timed-out"], t.cancelled
end

-- How many jobs are ready, or due.
local function waiting(ctx, queue)
  return call("ZCARD", queue.waiting) + call("ZCOUNT", queue.scheduled, "-inf", ctx.now)
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

local function add(queue, line) thin(queue, call("RPUSH", queue.minutes, line)) end

-- The first line of a queue. What was counted so far is of this minute, unless the queue was used on days before.
local function begin(queue, minute, line)
  local t = tally.read(queue)
  if t.first == t.day then add(queue, pack(LINE, minute - 1, 0, 0, 0, 0, 0, 0, 0, 0) .. pack(WAITING, 0)) end
  add(queue, line)
end

-- Writes the line of this minute, unless it is there, or `in_round` and nothing changed. A queue that nothing was
-- ever put into has none.
function M.note(ctx, queue, in_round)
  local minute = floor(ctx.now / root.MINUTE)
  queue.minute_ends = (minute + 1) * root.MINUTE
  local last = call("LINDEX", queue.minutes, -1)
  if last and unpack_bytes("<I4", last) >= minute then return end
  if not last and queues.made_ready(queue) == 0 then return end
  local line = pack(LINE, minute, M.totals(ctx, queue)) .. pack(WAITING, waiting(ctx, queue))
  if not last then return begin(queue, minute, line) end
  local seen = tonumber(call("HGET", ctx.keys.root, "minutes-done") or nil) or 0
  if in_round and seen > 0 and sub(last, TOTALS) == sub(line, TOTALS) then return end
  if unpack_bytes("<I4", last) < seen and seen < minute then add(queue, pack("<I4", seen) .. sub(last, TOTALS)) end
  add(queue, line)
end

-- Continues the round, unless it was done in this minute.
function M.continue(ctx)
  local minute = floor(ctx.now / root.MINUTE)
  local found = call("HMGET", ctx.keys.root, "minutes-done", "minutes-round", "minutes-from")
  local round, from = tonumber(found[2] or nil) or minute, tonumber(found[3] or nil) or 0
  if tonumber(found[1] or nil) == minute then return end
  if from == 0 or round > minute then round, from = minute, 0 end
  local names = call("ZRANGE", ctx.keys.queues, from, from + PIECE - 1)
  for i = 1, #names do M.note(ctx, keys.of_queue(ctx, names[i]), true) end
  if #names == PIECE then
    call("HSET", ctx.keys.root, "minutes-round", round, "minutes-from", from + PIECE)
  elseif from > 0 or names[1] then
    call("HSET", ctx.keys.root, "minutes-done", round, "minutes-from", 0)
  end
end

-- The same for a pop, which has `upkeep` left. Returns whether it may continue with this
-- queue: its next sample may be the first of a day.
function M.keep(ctx, queue, grant)
  if grant.upkeep < NOTED then return false end
  M.note(ctx, queue)
  grant.upkeep = grant.upkeep - NOTED
  local today, day = floor(ctx.now / root.DAY), queue.day
  if day ~= today then day = tally.read(queue).day end -- not known here
  if day > 0 and day < today then grant.upkeep = grant.upkeep - CLOSED end
  return true
end

-- Lines from `since` on, each its minute in ms, the totals, and how many waited (-1: not known), and one for now.
-- Before that comes a copy of the last line for the last round, which saw no change: a later `note` writes it.
function M.since(ctx, queue, since)
  local rows, row = {}, nil
  for _, line in ipairs(call("LRANGE", queue.minutes, 0, -1)) do
    row = { unpack_bytes(LINE, line) }
    local place = row[10]
    row[1], row[10] = row[1] * root.MINUTE, place <= #line and unpack_bytes(WAITING, line, place) or -1
    if row[1] >= since then rows[#rows + 1] = row end
  end
  local seen = (tonumber(call("HGET", ctx.keys.root, "minutes-done") or nil) or 0) * root.MINUTE
  if row and row[1] < seen and seen >= since and seen <= ctx.now then
    rows[#rows + 1] = { seen, unpack_(row, 2, 10) }
  end
  local now = { ctx.now, M.totals(ctx, queue) }
  now[10] = waiting(ctx, queue)
  rows[#rows + 1] = now
  return rows
end

return M
