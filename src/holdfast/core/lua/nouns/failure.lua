-- failure: failed jobs by group and by queue, until somebody acts.
--
-- A group is the set of its jobs, in the order they failed: its size, its first and
-- its last failure are read off it. Beside it lies how often jobs failed in it lately,
-- in a hash over all groups; with the last job of a group that goes too.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local text = require("base.text")
local event = require("nouns.event")
local history = require("nouns.history")
local job = require("nouns.job")
local state = require("nouns.state")
local stats = require("nouns.stats")
local trend = require("nouns.trend")
local M = {}

local call, mp_pack, mp_unpack
late.bind(function() call, mp_pack, mp_unpack = redis.call, cmsgpack.pack, cmsgpack.unpack end)

-- Notes group, message, time and worker with the job.
function M.note(at, jid, r, group, message, worker)
  r.flags = record.with(r.flags, record.FLAG.EXTRA)
  call("HSET", at.keys.extra .. jid, "e", mp_pack({ group, text.cut(message, at.bounds.message), at.now, worker }))
end

function M.read(at, jid, r)
  if not record.has(r.flags, record.FLAG.EXTRA) then return nil end
  local packed = call("HGET", at.keys.extra .. jid, "e")
  if packed then return mp_unpack(packed) end
end

-- Forgets what was noted: the job completed or went on.
function M.clear(at, jid, r)
  if record.has(r.flags, record.FLAG.EXTRA) then call("HDEL", at.keys.extra .. jid, "e") end
end

-- A job whose lease has ended fails. `what` is its line in the history.
-- Writes the record.
function M.add(at, queue, jid, r, what, group, message, worker)
  history.tell(at, jid, r, what, group)
  M.note(at, jid, r, group, message, worker)
  state.move(r, state.FAILED)
  r.ended = at.now
  r.flags = record.without(r.flags, record.FLAG.NOTICED)
  local rank = at.order.failure(at)
  call("ZADD", at.keys.group .. group, rank, jid)
  call("HSET", at.keys.groups, group, trend.counted(call("HGET", at.keys.groups, group), at.now))
  call("ZADD", queue.failed, rank, jid)
  stats.count(at, queue, "failures")
  stats.count(at, queue, "failed")
  event.changed(at, "failed")
  job.announce_end(at, jid, r)
  job.write(at, jid, r)
end

-- A job that failed and lost its place in its group gets it back.
function M.enter(at, queue, jid, group, when)
  local rank = at.order.failure(at, when)
  if call("ZADD", at.keys.group .. group, "NX", rank, jid) == 0 then return end
  call("ZADD", queue.failed, "NX", rank, jid)
  call("HSETNX", at.keys.groups, group, trend.counted(false, when))
end

-- Takes a jid out of a group, and the group away with its last one.
function M.leave(at, group, jid)
  local key = at.keys.group .. group
  if call("ZREM", key, jid) == 1 and call("EXISTS", key) == 0 then call("HDEL", at.keys.groups, group) end
end

-- A failed job leaves its group: it was put again or cancelled.
function M.remove(at, jid, r)
  local queue = keys.of_queue(at, r.queue)
  local noted = M.read(at, jid, r)
  if not noted then return end
  M.leave(at, noted[1], jid)
  call("ZREM", queue.failed, jid)
  stats.uncount(queue, noted[3], "failed")
  event.changed(at, "failed")
end

-- How many jobs are in a group.
function M.size(at, group) return call("ZCARD", at.keys.group .. group) end

-- Jids of a group, oldest failure first, at most `count`.
function M.oldest(at, group, count) return call("ZRANGE", at.keys.group .. group, 0, count - 1) end

-- When the failed job at that rank of its group failed (0: unknown), and which it is.
local function at_rank(at, group, rank)
  local jid = call("ZRANGE", at.keys.group .. group, rank, rank)[1]
  local packed = jid and call("HGET", at.keys.extra .. jid, "e")
  return packed and mp_unpack(packed)[3] or 0, jid or ""
end

-- Of a group, given its trend: name, size, first and last failure (ms), jid of the last,
-- when the first of the 48 cells begins, the cells.
function M.summary(at, group, packed)
  local row = { group, M.size(at, group), at_rank(at, group, 0) }
  row[4], row[5] = at_rank(at, group, -1)
  trend.tell(row, packed, at.now)
  return row
end

-- All groups, as (name, trend) pairs.
function M.groups(at) return call("HGETALL", at.keys.groups) end

-- The next cursor ("0" for the end), and about `count` such pairs.
function M.some_groups(at, cursor, count)
  local found = call("HSCAN", at.keys.groups, cursor, "COUNT", count)
  return found[1], found[2]
end

return M
