-- surroundings: what a job that is not over stands in: its queue, its throttles, its
-- place, and the workers of its queue.
local definition = require("nouns.throttle.throttle_definition")
local patterns = require("nouns.queue.patterns")
local pauses = require("nouns.queue.pause")
local job = require("nouns.job.job")
local queues = require("nouns.queue.queue")
local worker = require("nouns.lease.worker")
local M = {}

local HOLDERS, WORKERS, LOOKED_AT = 5, 20, 128

-- (jid, worker) of the first holders of a slot.
local function holders_of(ctx, set)
  local jids, found = call("ZRANGE", set, 0, HOLDERS - 1), {}
  for i = 1, #jids do
    local r = job.read(ctx, jids[i])
    found[2 * i - 1], found[2 * i] = jids[i], r and r.worker or ""
  end
  return found
end

-- Per throttle that has a limit, or for which this job still waits: id, maximum, used,
-- pending, this job's place among these (0: none), holders.
local function throttles_of(ctx, queue, jid, r)
  local rows = {}
  for _, id in ipairs(definition.ids(ctx, queue, jid, r)) do
    local facts = ctx.throttles.state(ctx, id)
    local holders, pending = ctx.throttles.sets(ctx, id)
    local rank = call("ZRANK", pending, jid)
    if facts[1] > 0 or rank then
      rows[#rows + 1] = { id, facts[1], facts[2], facts[3], rank and rank + 1 or 0, holders_of(ctx, holders) }
    end
  end
  return rows
end

-- Its rank among the ready (nil: it is not there), and how many of these have a higher
-- priority.
local function place_of(ctx, queue, jid, r)
  local rank = call("ZRANK", queue.waiting, ctx.order.member(r, jid))
  if not rank then return nil end
  local start = ctx.order.class_start and ctx.order.class_start(r.priority)
  return rank, start and call("ZCOUNT", queue.waiting, "-inf", "(" .. start) or 0
end

-- Of the workers seen last: those that name the queue (name, seen, quiet, slots, busy), how
-- many these are, and those that work by patterns, with what they take and their machine,
-- for the core does not know how to read that; and whether one of them names an identifier.
local function workers_of(ctx, queue)
  local rows, count, patterned, named = {}, 0, {}, false
  for _, facts in ipairs(worker.newest(ctx, LOOKED_AT)) do
    local served = facts[4]
    if find(served, '"' .. queue.name .. '"', 1, true) then
      count = count + 1
      if count <= WORKERS then rows[count] = { facts[1], facts[2], facts[3], facts[5], facts[6] } end
    elseif find(served, "[*@]") then
      patterned[#patterned + 1] = { facts[1], facts[2], facts[3], facts[5], facts[6], served, facts[7] }
      named = named or find(served, "@", 1, true)
    end
  end
  return rows, count, patterned, named
end

-- As (name, value) pairs.
function M.of(ctx, queue, jid, r)
  local _, flags, limit = queues.control(queue)
  local rank, higher = place_of(ctx, queue, jid, r)
  local rows, count, patterned, named = workers_of(ctx, queue)
  local found = {
    "queue_limit", limit, "waiting", call("ZCARD", queue.waiting), "running", call("ZCARD", queue.leases),
    "lost", call("ZCOUNT", queue.leases, "-inf", ctx.now), "throttles", throttles_of(ctx, queue, jid, r),
    "workers", rows, "worker_count", count, "pattern_workers", #patterned,
    "patterned", patterned, "identifiers", named and patterns.identifiers(ctx) or {},
  }
  local pause, n = pauses.record(ctx, queue, flags), #found
  if pause then found[n + 1], found[n + 2] = "pause", pause end
  n = #found
  if rank then found[n + 1], found[n + 2], found[n + 3], found[n + 4] = "rank", rank, "higher", higher end
  return found
end

return M
