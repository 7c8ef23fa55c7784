-- native_topics: the native door's rows for topics.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local bounds = require("base.bounds")
local checks = require("doors.checks")
local requests = require("doors.requests")
local replay = require("nouns.lease.replay")
local take = require("verbs.topic_take")
local topic = require("verbs.topic")

local MOST, MOST_MOVED, MOST_COUNTED = bounds.BATCH, bounds.LIMIT, 128
local WHOLE_REPLY = 1073741824 -- bytes: what is pulled is nowhere else
local ADDS, DRAINS, READS = {}, { "allow-oom" }, { "no-writes" }
local MODES = { ["0"] = 0, ["1"] = take.WILL_WAIT, ["2"] = take.WOKEN }
local groups, name, names, number, span, time = checks.groups, checks.name, checks.names, checks.number, checks.span,
  checks.time

-- A length of time or a moment, in ms.
local function when(args, i, is_delay) return is_delay and span(args, i, "delay") or time(args, i, "moment") end

-- Until when something may be ready: a moment, or now ("").
local function upto(ctx, args, i) return args[i] == "" and ctx.now or time(args, i, "max") end

local function how(args, i)
  local given = args[i]
  if given == "in" or given == "at" then return given end
  checks.expected("how", "in or at", given)
end

local function messages(args, first, is_delay)
  local last = checks.groups(args, first, 3)
  for i = first, last, 3 do
    checks.data(args, i + 2)
    name(args, i, "id")
    when(args, i + 1, is_delay)
  end
  return last
end

-- What is kept of a reservation: until when it lasts, and the ids.
local function keep(ctx, line, count, reply)
  if line == "" or #reply == 1 then return end
  local kept = { format("%.0f", reply[3]) }
  for i = 2, #reply, 3 do kept[#kept + 1] = reply[i] end
  replay.keep_grants(ctx, line, count, concat(kept, "\n"))
end

local function reserve(ctx, args)
  local line, count = checks.optional(args, 1, "line"), time(args, 2, "number")
  local topic_name, mode = name(args, 3, "topic"), MODES[args[4]] or checks.expected("mode", "0, 1 or 2", args[4])
  local limit, max, length = number(args, 5, "limit", 0, MOST), upto(ctx, args, 6), span(args, 7, "ttr")
  local kept = replay.find(ctx, line, count)
  if kept then
    local _, given = replay.grants(kept)
    local deadline, ids = match(given, "^(%d+)\n(.*)$")
    return take.reserved_again(ctx, topic_name, tonumber(deadline), ids)
  end
  local reply = take.reserve(ctx, topic_name, mode, limit, max, length)
  keep(ctx, line, count, reply)
  return reply
end

local function release(ctx, args)
  local topic_name, given, moment = name(args, 3, "topic"), args[4], nil
  if given ~= "done" then moment = when(args, 5, how(args, 4) == "in") end
  local last = groups(args, 6, 2)
  for i = 6, last, 2 do
    name(args, i, "id")
    if args[i + 1] ~= "" then time(args, i + 1, "deadline") end
  end
  return topic.release(ctx, topic_name, given, moment, args, 6, last)
end

return {
  { "topic_put", ADDS, "line number topic how (id when body)...", requests.row(function(ctx, args)
    local is_delay = how(args, 4) == "in"
    return topic.put(ctx, name(args, 3, "topic"), is_delay, args, 5, messages(args, 5, is_delay))
  end) },
  { "topic_reserve", DRAINS, "line number topic mode limit max ttr", reserve },
  { "topic_pull", DRAINS, "line number topic limit max", requests.row(function(ctx, args)
    return take.pull(ctx, name(args, 3, "topic"), number(args, 4, "limit", 1, MOST), upto(ctx, args, 5))
  end, WHOLE_REPLY) },
  { "topic_release", DRAINS, "line number topic how when (id deadline)...", requests.row(release) },
  { "topic_reschedule", DRAINS, "line number topic how when id...", requests.row(function(ctx, args)
    local is_delay = how(args, 4) == "in"
    local moment = when(args, 5, is_delay)
    return topic.reschedule(ctx, name(args, 3, "topic"), is_delay, moment, args, 6, names(args, 6, "id"))
  end) },
  { "topic_delete", DRAINS, "line number topic id...", requests.row(function(ctx, args)
    return topic.delete(ctx, name(args, 3, "topic"), args, 4, names(args, 4, "id"))
  end) },
  { "topic_requeue", DRAINS, "line number topic max limit", requests.row(function(ctx, args)
    return topic.requeue(ctx, name(args, 3, "topic"), upto(ctx, args, 4), number(args, 5, "limit", 1, MOST_MOVED))
  end) },
  { "topic_get", READS, "topic id...", function(ctx, args)
    return topic.get(ctx, name(args, 1, "topic"), args, 2, names(args, 2, "id"))
  end },
  { "topic_counts", READS, "topic...", function(ctx, args)
    return topic.counts(ctx, args, 1, names(args, 1, "topic", MOST_COUNTED))
  end },
}
