-- inspect: jobs as people want to see them. Writes nothing.
local refuse = require("base.refuse")
local failure = require("nouns.failure.failure")
local job = require("nouns.job.job")
local job_row = require("verbs.job_row")
local M = {}

-- Appends a row, false for a job that is unknown, to rows that weigh so much. Refuses what is
-- too much for one call; a single job never is.
local function append(ctx, rows, weight, jid, r)
  local row = r and job_row.of(ctx, jid, r) or false
  rows[#rows + 1] = row
  if row then weight = weight + job_row.weight(row) end
  if #rows == 1 or weight <= (ctx.bounds.rows or weight) then return weight end
  refuse.call("TOO_MANY", "these jobs are too large for one call: request fewer")
end

-- A row per jid, false for an unknown one.
function M.jobs(ctx, jids, first, last)
  local rows, weight = {}, 0
  for i = first, last do weight = append(ctx, rows, weight, jids[i], job.read(ctx, jids[i])) end
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
function M.peek(ctx, queue, offset, count)
  local found, skip = {}, offset
  for _, look in ipairs({ { queue.leases, ctx.now }, { queue.waiting }, { queue.scheduled, ctx.now } }) do
    local size = gather(found, look[1], look[2], skip, count - #found)
    skip = skip > size and skip - size or 0
  end
  local rows, weight = {}, 0
  for i = 1, #found do
    local jid = ctx.order.jid(found[i])
    local r = job.read(ctx, jid)
    if r then weight = append(ctx, rows, weight, jid, r) end
  end
  return rows
end

-- Jids of completed jobs, newest first.
function M.completed(ctx, offset, count)
  if count <= 0 then return {} end
  return ctx.completed.list(ctx, offset, count)
end

-- The next cursor ("0" for the end), then (group, count) pairs of failure groups.
function M.failures(ctx, cursor, count)
  local following, groups = failure.some_groups(ctx, cursor, count)
  local reply = { following }
  for i = 1, #groups, 2 do reply[i + 1], reply[i + 2] = groups[i], failure.size(ctx, groups[i]) end
  return reply
end

-- The next cursor, then a row per failure group: `failure.summary`.
function M.failure_groups(ctx, cursor, count)
  local following, groups = failure.some_groups(ctx, cursor, count)
  local reply = { following }
  for i = 1, #groups, 2 do reply[#reply + 1] = failure.summary(ctx, groups[i], groups[i + 1]) end
  return reply
end

-- How many a failure group has, then its jids, newest first.
function M.failed(ctx, group, offset, count)
  local key = ctx.keys.group .. group
  local reply = { call("ZCARD", key) }
  if count <= 0 then return reply end
  local jids = call("ZRANGE", key, offset, offset + count - 1, "REV")
  for i = 1, #jids do reply[i + 1] = jids[i] end
  return reply
end

return M
