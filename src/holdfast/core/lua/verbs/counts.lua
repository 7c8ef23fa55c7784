-- counts: the sizes of the very sets the core works on. Writes nothing: a due
-- job counts as waiting without being moved, a lease past its end as stalled.
local keys = require("base.keys")
local root = require("base.root")
local job = require("nouns.job.job")
local pauses = require("nouns.queue.pause")
local queues = require("nouns.queue.queue")
local M = {}

local PAGE = 256
local NOT_PAUSED = { "", "", 0, 0 }

local function due_at(queue, rank)
  return tonumber(call("ZRANGE", queue.scheduled, rank, rank, "WITHSCORES")[2] or nil)
end

-- Since when the job waits that is next: since its put or its last pop, or since it was
-- due. One of a lower priority may wait longer.
local function waits_since(ctx, queue, due)
  local member = call("ZRANGE", queue.waiting, 0, 0)[1]
  local r = member and job.read(ctx, ctx.order.jid(member))
  if r then return ctx.record.since(r) end
  return due > 0 and due_at(queue, 0) or 0
end

-- Whether it has no keys but those of waiting jobs, as most of many queues.
local function is_plain(queue)
  return call("EXISTS", queue.leases, queue.scheduled, queue.throttled, queue.depends, queue.recurring, queue.failed,
    queue.control, queue.options) == 0
end

-- Its row.
local function plain_row(ctx, queue)
  local waiting = call("ZCARD", queue.waiting)
  return {
    queue.name, waiting, 0, 0, 0, 0, 0, 0, 0, 0, waiting > 0 and waits_since(ctx, queue, 0) or 0, 0, 0,
    root.heartbeat(ctx), "", "", 0, 0, 0,
  }
end

-- The ten numbers, how many scheduled jobs are due, and the queue's pause.
local function sizes(ctx, queue, flags)
  local due = call("ZCOUNT", queue.scheduled, "-inf", ctx.now)
  local stalled = call("ZCOUNT", queue.leases, "-inf", ctx.now)
  local pause = pauses.record(ctx, queue, flags)
  return {
    queue.name, call("ZCARD", queue.waiting) + due, call("ZCARD", queue.leases) - stalled, stalled,
    call("ZCARD", queue.throttled), call("ZCARD", queue.scheduled) - due, call("ZCARD", queue.depends),
    call("ZCARD", queue.recurring), pause and 1 or 0, call("ZCARD", queue.failed),
  }, due, pause
end

-- A row with what people want to see beside the numbers: since when the next job waits,
-- when the next scheduled one is due (0: none), limit, heartbeat (times in ms); who
-- paused, why, since, until; how many may wait.
local function row(ctx, name)
  local queue = keys.of_queue(ctx, name)
  if is_plain(queue) then return plain_row(ctx, queue) end
  local _, flags, limit, heartbeat = queues.control(queue)
  local found, due, pause = sizes(ctx, queue, flags)
  found[11] = found[2] > 0 and waits_since(ctx, queue, due) or 0
  found[12] = found[6] > 0 and due_at(queue, due) or 0
  found[13], found[14] = limit, heartbeat == queues.NEVER and root.heartbeat(ctx) or heartbeat
  for i = 1, 4 do found[14 + i] = (pause or NOT_PAUSED)[i] end
  found[19] = tonumber(call("HGET", queue.options, "max-waiting") or nil) or 0
  return found
end

-- The known queues, in order of first use.
function M.queues(ctx) return call("ZRANGE", ctx.keys.queues, 0, -1) end

-- The numbers alone, of all the queues named, or of all known ones.
function M.numbers(ctx, names)
  local rows = {}
  for i, name in ipairs(names or M.queues(ctx)) do
    local queue = keys.of_queue(ctx, name)
    local _, flags = queues.control(queue)
    rows[i] = sizes(ctx, queue, flags)
  end
  return rows
end

-- One row per queue named; if none is, per known queue, of which the first 256: the others
-- are asked for by name.
function M.run(ctx, names, first, last)
  local rows = {}
  if last < first then
    names, first = call("ZRANGE", ctx.keys.queues, 0, PAGE - 1), 1
    last = #names
  end
  for i = first, last do rows[#rows + 1] = row(ctx, names[i]) end
  return rows
end

return M
