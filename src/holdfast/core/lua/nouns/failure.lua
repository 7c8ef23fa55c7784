-- failure: failed jobs by group and by queue, newest first, until somebody acts.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local text = require("base.text")
local history = require("nouns.history")
local job = require("nouns.job")
local state = require("nouns.state")
local stats = require("nouns.stats")
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
  if call("ZADD", at.keys.group .. group, rank, jid) == 1 then call("HINCRBY", at.keys.groups, group, 1) end
  call("ZADD", queue.failed, rank, jid)
  stats.count(queue, at.now, "failures", 1)
  stats.count(queue, at.now, "failed", 1)
  job.announce_end(at, jid, r)
  job.write(at, jid, r)
end

-- A failed job leaves its group: it was put again or cancelled.
function M.remove(at, jid, r)
  local queue = keys.of_queue(at, r.queue)
  local noted = M.read(at, jid, r)
  if not noted then return end
  local group = noted[1]
  if call("ZREM", at.keys.group .. group, jid) == 1 and call("HINCRBY", at.keys.groups, group, -1) <= 0 then
    call("HDEL", at.keys.groups, group)
  end
  call("ZREM", queue.failed, jid)
  stats.count(queue, noted[3], "failed", -1)
end

return M
