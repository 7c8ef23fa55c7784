-- looking: jobs, lists of them, and counts.
local late = require("base.late")
local keys = require("base.keys")
local words = require("doors.protocol.words")
local job_text = require("doors.protocol.job_text")
local failure = require("nouns.failure")
local job = require("nouns.job")
local counts = require("verbs.counts")
local stats = require("verbs.stats")
local M = {}

local call, encode, concat, format
late.bind(function() call, encode, concat, format = redis.call, cjson.encode, table.concat, string.format end)

M["job.get"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local r = job.read(at, jid)
  return r and job_text.of(at, jid, r)
end

M["job.getMulti"] = function(at, args)
  local texts = {}
  for i = 3, #args do
    local r = job.read(at, args[i])
    if r then texts[#texts + 1] = job_text.of(at, args[i], r) end
  end
  return job_text.list(texts, at.accent.empty_list)
end

M["jobs.completed"] = function(at, args)
  local offset, limit = words.page(at, args, 3, "Jobs")
  return job_text.jids(at, at.completed.range(at, offset, offset + limit - 1))
end

-- Due jobs count as waiting, so they are not listed as scheduled.
local function scheduled(at, queue, first, last)
  local due = call("ZCOUNT", queue.scheduled, "-inf", at.now)
  if first >= 0 then first = first + due end
  if last >= 0 then last = last + due end
  local jids, members = {}, call("ZRANGE", queue.scheduled, first, last, "WITHSCORES")
  for i = 1, #members, 2 do
    if tonumber(members[i + 1]) > at.now then jids[#jids + 1] = members[i] end
  end
  return jids
end

M["queue.jobsByState"] = function(at, args)
  local name = words.text(args, 3, 'Jobs(): Arg "state" missing')
  if name == "complete" then return M["jobs.completed"](at, { "", "", args[4], args[5] }) end
  local queue = keys.of_queue(at, words.text(args, 4, 'Jobs(): Arg "queue" missing'))
  local offset, limit = words.page(at, args, 5, "Jobs")
  local jids
  if name == "depends" or name == "throttled" then
    jids = call("ZRANGE", queue[name], offset, offset + limit - 1)
  elseif name == "scheduled" then
    jids = scheduled(at, queue, offset, offset + limit - 1)
  elseif name == "recurring" then
    jids = call("ZRANGE", queue.recurring, "-inf", "+inf", "BYSCORE", "LIMIT", offset, limit)
  elseif name == "running" then
    jids = call("ZRANGE", queue.leases, at.now, "+inf", "BYSCORE", "LIMIT", offset, limit)
  elseif name == "stalled" then
    jids = call("ZRANGE", queue.leases, "-inf", at.now, "BYSCORE", "LIMIT", offset, limit)
  else
    words.refuse('Jobs(): Unknown type "' .. name .. '"')
  end
  return job_text.jids(at, jids)
end

-- The first and the limit of a page, which are looked at even where nobody needs them.
local function failed_page(args, i)
  return words.whole(args, i, 0, 'Failed(): Arg "start" is not a number'),
    words.whole(args, i + 1, 25, 'Failed(): Arg "limit" is not a number')
end

local function group_counts(at)
  local found, texts = failure.groups(at), {}
  for i = 1, #found, 2 do texts[#texts + 1] = format("%s:%d", encode(found[i]), failure.size(at, found[i])) end
  return "{" .. concat(texts, ",") .. "}"
end

M["failureGroups.counts"] = function(at, args)
  failed_page(args, 3)
  return group_counts(at)
end

M["jobs.failedByGroup"] = function(at, args)
  local group = args[3]
  if not group then return group_counts(at) end
  local first, limit = failed_page(args, 4)
  local key = at.keys.group .. group
  local jids = call("ZRANGE", key, first, first + limit - 1, "REV")
  return '{"total":' .. call("ZCARD", key) .. ',"jobs":' .. job_text.names(jids, "{}") .. "}"
end

local COUNTS = { "waiting", "running", "stalled", "throttled", "scheduled", "depends", "recurring" }

local function count_text(row)
  local texts = { '{"name":' .. encode(row[1]) }
  for i = 1, #COUNTS do texts[#texts + 1] = '"' .. COUNTS[i] .. '":' .. row[i + 1] end
  return concat(texts, ",") .. ',"paused":' .. (row[9] == 1 and "true" or "false") .. "}"
end

local function all_counts(at, empty)
  local texts = {}
  for i, row in ipairs(counts.numbers(at)) do texts[i] = count_text(row) end
  return job_text.list(texts, empty)
end

M["queue.counts"] = function(at, args)
  if not args[3] then return all_counts(at, "{}") end
  return count_text(counts.numbers(at, { args[3] })[1])
end

M["queues.counts"] = function(at) return all_counts(at, "[]") end

M["queues.names"] = function(at) return job_text.names(counts.queues(at), "[]") end

M["queue.length"] = function(at, args)
  local queue = keys.of_queue(at, words.text(args, 3, words.NO_QUEUE))
  return call("ZCARD", queue.leases) + call("ZCARD", queue.waiting) + call("ZCARD", queue.scheduled)
end

local function series(found, i)
  return '{"count":' .. found[i] .. ',"mean":' .. job_text.number(tonumber(found[i + 1])) .. ',"std":' ..
    job_text.number(tonumber(found[i + 2])) .. ',"histogram":[' .. concat(found[i + 3], ",") .. "]}"
end

M["queue.stats"] = function(at, args)
  local name = words.text(args, 3, words.NO_QUEUE)
  local date = words.number(args, 4, 'Stats(): Arg "date" missing or not a number')
  local found = stats.of(at, name, date * 1000)
  return '{"retries":' .. found[1] .. ',"failed":' .. found[2] .. ',"failures":' .. found[3] .. ',"wait":' ..
    series(found, 4) .. ',"run":' .. series(found, 9) .. "}"
end

return M
