-- views: jobs, lists of them, and counts.
local keys = require("base.keys")
local arguments = require("doors.protocol.arguments")
local job_text = require("doors.protocol.job_text")
local failure = require("nouns.failure.failure")
local job = require("nouns.job.job")
local counts = require("verbs.counts")
local stats = require("verbs.stats")
local M = {}

M["job.get"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  local r = job.read(ctx, jid)
  return r and job_text.of(ctx, jid, r)
end

M["job.getMulti"] = function(ctx, args)
  local texts = {}
  for i = 3, #args do
    local r = job.read(ctx, args[i])
    if r then texts[#texts + 1] = job_text.of(ctx, args[i], r) end
  end
  return job_text.list(texts, ctx.dialect.empty_list)
end

M["jobs.completed"] = function(ctx, args)
  local offset, limit = arguments.page(ctx, args, 3, "Jobs")
  return job_text.jids(ctx, ctx.completed.range(ctx, offset, offset + limit - 1))
end

-- Due jobs count as waiting, so they are not listed as scheduled.
local function scheduled(ctx, queue, first, last)
  local due = call("ZCOUNT", queue.scheduled, "-inf", ctx.now)
  if first >= 0 then first = first + due end
  if last >= 0 then last = last + due end
  local jids, members = {}, call("ZRANGE", queue.scheduled, first, last, "WITHSCORES")
  for i = 1, #members, 2 do
    if tonumber(members[i + 1]) > ctx.now then jids[#jids + 1] = members[i] end
  end
  return jids
end

M["queue.jobsByState"] = function(ctx, args)
  local name = arguments.text(args, 3, 'Jobs(): Arg "state" missing')
  if name == "complete" then return M["jobs.completed"](ctx, { "", "", args[4], args[5] }) end
  local queue = keys.of_queue(ctx, arguments.text(args, 4, 'Jobs(): Arg "queue" missing'))
  local offset, limit = arguments.page(ctx, args, 5, "Jobs")
  local jids
  if name == "depends" or name == "throttled" then
    jids = call("ZRANGE", queue[name], offset, offset + limit - 1)
  elseif name == "scheduled" then
    jids = scheduled(ctx, queue, offset, offset + limit - 1)
  elseif name == "recurring" then
    jids = call("ZRANGE", queue.recurring, "-inf", "+inf", "BYSCORE", "LIMIT", offset, limit)
  elseif name == "running" then
    jids = call("ZRANGE", queue.leases, ctx.now, "+inf", "BYSCORE", "LIMIT", offset, limit)
  elseif name == "stalled" then
    jids = call("ZRANGE", queue.leases, "-inf", ctx.now, "BYSCORE", "LIMIT", offset, limit)
  else
    arguments.refuse('Jobs(): Unknown type "' .. name .. '"')
  end
  return job_text.jids(ctx, jids)
end

-- The first and the limit of a page, which are checked even where they are not needed.
local function failed_page(args, i)
  return arguments.whole(args, i, 0, 'Failed(): Arg "start" is not a number'),
    arguments.whole(args, i + 1, 25, 'Failed(): Arg "limit" is not a number')
end

local function group_counts(ctx)
  local found, texts = failure.groups(ctx), {}
  for i = 1, #found, 2 do texts[#texts + 1] = format("%s:%d", encode(found[i]), failure.size(ctx, found[i])) end
  return "{" .. concat(texts, ",") .. "}"
end

M["failureGroups.counts"] = function(ctx, args)
  failed_page(args, 3)
  return group_counts(ctx)
end

M["jobs.failedByGroup"] = function(ctx, args)
  local group = args[3]
  if not group then return group_counts(ctx) end
  local first, limit = failed_page(args, 4)
  local key = ctx.keys.group .. group
  local jids = call("ZRANGE", key, first, first + limit - 1, "REV")
  return '{"total":' .. call("ZCARD", key) .. ',"jobs":' .. job_text.names(jids, "{}") .. "}"
end

local COUNTS = { "waiting", "running", "stalled", "throttled", "scheduled", "depends", "recurring" }

local function count_text(row)
  local texts = { '{"name":' .. encode(row[1]) }
  for i = 1, #COUNTS do texts[#texts + 1] = '"' .. COUNTS[i] .. '":' .. row[i + 1] end
  return concat(texts, ",") .. ',"paused":' .. (row[9] == 1 and "true" or "false") .. "}"
end

local function all_counts(ctx, empty)
  local texts = {}
  for i, row in ipairs(counts.numbers(ctx)) do texts[i] = count_text(row) end
  return job_text.list(texts, empty)
end

M["queue.counts"] = function(ctx, args)
  if not args[3] then return all_counts(ctx, "{}") end
  return count_text(counts.numbers(ctx, { args[3] })[1])
end

M["queues.counts"] = function(ctx) return all_counts(ctx, "[]") end

M["queues.names"] = function(ctx) return job_text.names(counts.queues(ctx), "[]") end

M["queue.length"] = function(ctx, args)
  local queue = keys.of_queue(ctx, arguments.text(args, 3, arguments.NO_QUEUE))
  return call("ZCARD", queue.leases) + call("ZCARD", queue.waiting) + call("ZCARD", queue.scheduled)
end

local function series(found, i)
  return '{"count":' .. found[i] .. ',"mean":' .. job_text.number(tonumber(found[i + 1])) .. ',"std":' ..
    job_text.number(tonumber(found[i + 2])) .. ',"histogram":[' .. concat(found[i + 3], ",") .. "]}"
end

M["queue.stats"] = function(ctx, args)
  local name = arguments.text(args, 3, arguments.NO_QUEUE)
  local date = arguments.number(args, 4, 'Stats(): Arg "date" missing or not a number')
  local found = stats.of(ctx, name, date * 1000)
  return '{"retries":' .. found[1] .. ',"failed":' .. found[2] .. ',"failures":' .. found[3] .. ',"wait":' ..
    series(found, 4) .. ',"run":' .. series(found, 9) .. "}"
end

return M
