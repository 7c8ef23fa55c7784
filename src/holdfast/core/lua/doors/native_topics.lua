-- native_topics: the native door's rows for topics.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local late = require("base.late")
local checks = require("doors.checks")
local numbered = require("doors.numbered")
local replay = require("nouns.replay")
local look = require("verbs.topic_look")
local take = require("verbs.topic_take")
local topic = require("verbs.topic")

local MOST, MOST_MOVED, MOST_COUNTED = 512, 1000, 128
local WHOLE_REPLY = 1073741824 -- bytes: what is pulled is nowhere else
local ADDS, DRAINS, READS = {}, { "allow-oom" }, { "no-writes" }
local MODES = { ["0"] = 0, ["1"] = take.WILL_WAIT, ["2"] = take.WOKEN }
local groups, name, names, number, span, time = checks.groups, checks.name, checks.names, checks.number, checks.span,
  checks.time

local concat, format, match
late.bind(function() concat, format, match = table.concat, string.format, string.match end)

-- A length of time or a moment, in ms.
local function when(args, i, is_delay) return is_delay and span(args, i, "delay") or time(args, i, "moment") end

-- Until when something may be ready: a moment, or now ("").
local function upto(at, args, i) return args[i] == "" and at.now or time(args, i, "max") end

local function how(args, i)
  local said = args[i]
  if said == "in" or said == "at" then return said end
  checks.bad("a moment is given in so many ms, or at a time")
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
local function keep(at, line, count, reply)
  if line == "" or #reply == 1 then return end
  local kept = { format("%.0f", reply[3]) }
  for i = 2, #reply, 3 do kept[#kept + 1] = reply[i] end
  replay.keep_grants(at, line, count, concat(kept, "\n"))
end

local function reserve(at, args)
  local line, count = checks.optional(args, 1, "line"), time(args, 2, "number")
  local topic_name, mode = name(args, 3, "topic"), MODES[args[4]] or checks.bad("mode is 0, 1 or 2")
  local limit, max, length = number(args, 5, "limit", 0, MOST), upto(at, args, 6), span(args, 7, "ttr")
  local kept = replay.find(at, line, count)
  if kept then
    local _, said = replay.grants(kept)
    local deadline, ids = match(said, "^(%d+)\n(.*)$")
    return take.reserved_again(at, topic_name, tonumber(deadline), ids)
  end
  local reply = take.reserve(at, topic_name, mode, limit, max, length)
  keep(at, line, count, reply)
  return reply
end

local function release(at, args)
  local topic_name, given, moment = name(args, 3, "topic"), args[4], nil
  if given ~= "done" then moment = when(args, 5, how(args, 4) == "in") end
  local last = groups(args, 6, 2)
  for i = 6, last, 2 do
    name(args, i, "id")
    if args[i + 1] ~= "" then time(args, i + 1, "deadline") end
  end
  return topic.release(at, topic_name, given, moment, args, 6, last)
end

return {
  { "topic_put", ADDS, "line number topic how (id when body)...", numbered.row(function(at, args)
    local is_delay = how(args, 4) == "in"
    return topic.put(at, name(args, 3, "topic"), is_delay, args, 5, messages(args, 5, is_delay))
  end) },
  { "topic_reserve", DRAINS, "line number topic mode limit max ttr", reserve },
  { "topic_pull", DRAINS, "line number topic limit max", numbered.row(function(at, args)
    return take.pull(at, name(args, 3, "topic"), number(args, 4, "limit", 1, MOST), upto(at, args, 5))
  end, WHOLE_REPLY) },
  { "topic_release", DRAINS, "line number topic how when (id deadline)...", numbered.row(release) },
  { "topic_reschedule", DRAINS, "line number topic how when id...", numbered.row(function(at, args)
    local is_delay = how(args, 4) == "in"
    local moment = when(args, 5, is_delay)
    return topic.reschedule(at, name(args, 3, "topic"), is_delay, moment, args, 6, names(args, 6, "id"))
  end) },
  { "topic_delete", DRAINS, "line number topic id...", numbered.row(function(at, args)
    return topic.delete(at, name(args, 3, "topic"), args, 4, names(args, 4, "id"))
  end) },
  { "topic_requeue", DRAINS, "line number topic max limit", numbered.row(function(at, args)
    return topic.requeue(at, name(args, 3, "topic"), upto(at, args, 4), number(args, 5, "limit", 1, MOST_MOVED))
  end) },
  { "topic_get", READS, "topic id...", function(at, args)
    return look.get(at, name(args, 1, "topic"), args, 2, names(args, 2, "id"))
  end },
  { "topic_counts", READS, "topic...", function(at, args)
    return look.counts(at, args, 1, names(args, 1, "topic", MOST_COUNTED))
  end },
}
