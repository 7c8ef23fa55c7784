-- failure: failed jobs by group and by queue, until someone acts.
--
-- A group is the set of its jobs, in the order they failed: its size, its first and
-- its last failure are read off it. Beside it lies how often jobs failed in it lately,
-- in a hash over all groups; with the last job of a group that goes too.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local text = require("base.text")
local event = require("nouns.event.event")
local members = require("nouns.flow.members")
local history = require("nouns.job.history")
local state = require("nouns.job.state")
local stats = require("nouns.queue.stats")
local trend = require("nouns.queue.trend")
local M = {}

-- What is noted of a failure is a list of these.
M.GROUP, M.MESSAGE, M.WHEN, M.WORKER = 1, 2, 3, 4
local GROUP, WHEN = M.GROUP, M.WHEN

-- Notes group, message, time and worker with the job.
function M.note(ctx, jid, r, group, message, worker)
  r.flags = record.with(r.flags, record.FLAG.EXTRA)
  call("HSET", ctx.keys.extra .. jid, "e", mp_pack({ group, text.cut(message, ctx.bounds.message), ctx.now, worker }))
end

function M.read(ctx, jid, r)
  if not record.has(r.flags, record.FLAG.EXTRA) then return nil end
  local packed = call("HGET", ctx.keys.extra .. jid, "e")
  if packed then return mp_unpack(packed) end
end

-- Forgets what was noted: the job completed or moved on.
function M.clear(ctx, jid, r)
  if record.has(r.flags, record.FLAG.EXTRA) then call("HDEL", ctx.keys.extra .. jid, "e") end
end

-- A job fails: see `ending`. `what` is its line in the history. Write the record afterwards.
function M.add(ctx, queue, jid, r, what, group, message, worker)
  history.add(ctx, jid, r, what, group)
  M.note(ctx, jid, r, group, message, worker)
  state.move(r, state.FAILED)
  r.ended = ctx.now
  r.flags = record.without(r.flags, record.FLAG.NOTICED)
  local rank = ctx.order.failure(ctx)
  call("ZADD", ctx.keys.group .. group, rank, jid)
  call("HSET", ctx.keys.groups, group, trend.counted(call("HGET", ctx.keys.groups, group), ctx.now))
  call("ZADD", queue.failed, rank, jid)
  stats.count(ctx, queue, "failures")
  stats.count(ctx, queue, "failed")
  event.changed(ctx, "failed")
end

-- A job that failed and lost its place in its group gets it back.
function M.enter(ctx, queue, jid, group, when)
  local rank = ctx.order.failure(ctx, when)
  if call("ZADD", ctx.keys.group .. group, "NX", rank, jid) == 0 then return end
  call("ZADD", queue.failed, "NX", rank, jid)
  call("HSETNX", ctx.keys.groups, group, trend.counted(false, when))
end

-- A job that was put to work again goes back to where it failed; `noted` is what was kept of that: see `ending`.
-- Write the record afterwards.
function M.restore(ctx, queue, jid, r, noted)
  state.move(r, state.FAILED)
  r.ended = noted[WHEN]
  M.enter(ctx, queue, jid, noted[GROUP], noted[WHEN])
  stats.recount(queue, noted[WHEN])
  event.changed(ctx, "failed")
end

-- Takes jids out of a group, and the group away with its last one.
function M.leave(ctx, group, ...)
  local key = ctx.keys.group .. group
  if call("ZREM", key, ...) >= 1 and call("EXISTS", key) == 0 then call("HDEL", ctx.keys.groups, group) end
end

-- A failed job leaves its group: it was put again or cancelled.
function M.remove(ctx, jid, r)
  local queue = keys.of_queue(ctx, r.queue)
  if record.has(r.flags, record.FLAG.FLOW) then members.revived(ctx, jid) end
  local noted = M.read(ctx, jid, r)
  if not noted then return end
  M.leave(ctx, noted[GROUP], jid)
  call("ZREM", queue.failed, jid)
  stats.uncount(queue, noted[WHEN], "failed")
  event.changed(ctx, "failed")
end

-- Appends a value to the list that a table has under `key`.
local function gather(lists, key, value)
  local list = lists[key] or {}
  lists[key], list[#list + 1] = list, value
end

-- The same for many failed jobs, each set and each day in one go; `packed` has what was noted of each.
function M.remove_many(ctx, jids, records, packed)
  local groups, queues, days = {}, {}, {}
  for i = 1, #jids do
    local queue, noted = keys.of_queue(ctx, records[i].queue), packed[i] and mp_unpack(packed[i])
    if record.has(records[i].flags, record.FLAG.FLOW) then members.revived(ctx, jids[i]) end
    if noted then
      gather(groups, noted[GROUP], jids[i])
      gather(queues, queue, jids[i])
      gather(days, queue.stats .. floor(noted[WHEN] / root.DAY), { queue, noted[WHEN] })
    end
  end
  for group, left in pairs(groups) do M.leave(ctx, group, unpack_(left)) end
  for queue, left in pairs(queues) do call("ZREM", queue.failed, unpack_(left)) end
  for _, entries in pairs(days) do stats.uncount(entries[1][1], entries[1][2], "failed", #entries) end
  event.changed(ctx, "failed")
end

-- How many jobs are in a group.
function M.size(ctx, group) return call("ZCARD", ctx.keys.group .. group) end

-- Jids of a group, oldest failure first, at most `count` behind the first `skipped` (nil: none).
function M.oldest(ctx, group, count, skipped)
  local first = skipped or 0
  return call("ZRANGE", ctx.keys.group .. group, first, first + count - 1)
end

-- When the failed job at that rank of its group failed (0: unknown), and which it is.
local function at_rank(ctx, group, rank)
  local jid = call("ZRANGE", ctx.keys.group .. group, rank, rank)[1]
  local packed = jid and call("HGET", ctx.keys.extra .. jid, "e")
  return packed and mp_unpack(packed)[3] or 0, jid or ""
end

-- Of a group, given its trend: name, size, first and last failure (ms), jid of the last,
-- when the first of the 48 cells begins, the cells.
function M.summary(ctx, group, packed)
  local row = { group, M.size(ctx, group), at_rank(ctx, group, 0) }
  row[4], row[5] = at_rank(ctx, group, -1)
  trend.append(row, packed, ctx.now)
  return row
end

-- All groups, as (name, trend) pairs.
function M.groups(ctx) return call("HGETALL", ctx.keys.groups) end

-- The next cursor ("0" for the end), and about `count` such pairs.
function M.some_groups(ctx, cursor, count)
  local found = call("HSCAN", ctx.keys.groups, cursor, "COUNT", count)
  return found[1], found[2]
end

return M
