-- inspect: jobs as people want to see them. Writes nothing.
local late = require("base.late")
local keys = require("base.keys")
local failure = require("nouns.failure")
local history = require("nouns.history")
local job = require("nouns.job")
local result = require("nouns.result")
local retention = require("nouns.retention")
local state = require("nouns.state")
local M = {}

local call
late.bind(function() call = redis.call end)

-- Every line's code becomes its word. A job that went on to a next queue was
-- done in one and put into the other.
local function told(at, jid, r)
  local lines, words, queue = history.lines(at, jid, r), {}, nil
  for i = 1, #lines do
    local line = lines[i]
    local what, name = line[1], line[6]
    line[1], line[8] = history.WHAT[what], nil
    words[#words + 1] = line
    if what == history.ADVANCED then
      line[1], line[6] = history.WHAT[history.DONE], queue or name
      words[#words + 1] = { "put", line[2], 0, 0, "", name, "" }
    end
    if what == history.PUT or what == history.POPPED or what == history.ADVANCED then queue = name end
  end
  return words
end

-- State as of now: a scheduled job that is due shows as waiting.
local function placed(at, queue, jid, r)
  local expires, due, name = 0, 0, state.NAME[r.state]
  if r.state == state.RUNNING then expires = tonumber(call("ZSCORE", queue.leases, jid) or 0) end
  if r.state == state.SCHEDULED then
    due = tonumber(call("ZSCORE", queue.scheduled, jid) or 0)
    if due <= at.now then name = "waiting" end
  end
  return name, expires, due
end

-- One job, in the order of the protocol's job row.
function M.row(at, jid, r)
  local running, over = r.state == state.RUNNING, r.state == state.COMPLETE or r.state == state.FAILED
  local name, expires, due = placed(at, keys.of_queue(at, r.queue), jid, r)
  return {
    jid, r.klass, name, r.queue, running and r.worker or "", r.priority, r.retries, r.remaining, r.attempts, r.losses,
    r.created, r.queued, r.popped, over and r.ended or 0, running and r.token or 0, expires, due, r.flags,
    job.body(at, jid, r), {}, { "ql:q:" .. r.queue }, {}, {}, failure.read(at, jid, r) or {}, told(at, jid, r),
    result.read(at, jid),
  }
end

-- A row per jid, false for an unknown one.
function M.jobs(at, jids, first, last)
  local rows = {}
  for i = first, last do
    local r = job.read(at, jids[i])
    rows[#rows + 1] = r and M.row(at, jids[i], r) or false
  end
  return rows
end

-- Appends up to `count` of a set's members from `skip` on. Returns how many the
-- set has that were skipped or taken.
local function gather(found, set, how, skip, count)
  local size = how and call("ZCOUNT", set, "-inf", how) or call("ZCARD", set)
  if count <= 0 or skip >= size then return size end
  local members = how and call("ZRANGE", set, "-inf", how, "BYSCORE", "LIMIT", skip, count)
    or call("ZRANGE", set, skip, skip + count - 1)
  for i = 1, #members do found[#found + 1] = members[i] end
  return size
end

-- What a pop would see: lost leases, then the ready, then what came due.
function M.peek(at, queue, offset, count)
  local found, skip = {}, offset
  for _, look in ipairs({ { queue.leases, at.now }, { queue.waiting }, { queue.scheduled, at.now } }) do
    local size = gather(found, look[1], look[2], skip, count - #found)
    skip = skip > size and skip - size or 0
  end
  local rows = {}
  for i = 1, #found do
    local jid = at.order.jid(found[i])
    local r = job.read(at, jid)
    if r then rows[#rows + 1] = M.row(at, jid, r) end
  end
  return rows
end

-- Jids of completed jobs, newest first.
function M.completed(at, offset, count)
  if count <= 0 then return {} end
  return retention.list(at, offset, count)
end

-- (group, count) pairs of the failure groups.
function M.failures(at) return call("HGETALL", at.keys.groups) end

-- How many a failure group has, then its jids, newest first.
function M.failed(at, group, offset, count)
  local key = at.keys.group .. group
  local reply = { call("ZCARD", key) }
  if count <= 0 then return reply end
  local jids = call("ZRANGE", key, offset, offset + count - 1, "REV")
  for i = 1, #jids do reply[i + 1] = jids[i] end
  return reply
end

return M
