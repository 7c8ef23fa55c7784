-- native_jobs: the native door's rows for what people attach to jobs.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local bounds = require("base.bounds")
local text = require("base.text")
local checks = require("doors.checks")
local requests = require("doors.requests")
local log = require("verbs.log")
local report = require("verbs.report")
local tag = require("verbs.tag")
local track = require("verbs.track")

local PAGE, LONGEST_NOTE = bounds.COUNT, 16384
local ADDS, READS = {}, { "no-writes" }
local name, names, number, time = checks.name, checks.names, checks.number, checks.time

-- What comes with a line of history: a JSON object (the caller has looked at it), or "".
local function object(args, i)
  local given = args[i]
  if given == "" then return given end
  if not given or #given > LONGEST_NOTE or not find(given, "^%s*{.*}%s*$") then
    checks.bad("data: expected a JSON object of at most " .. LONGEST_NOTE .. " bytes")
  end
  return given
end

local function fraction(args, i)
  local given = args[i]
  local value = text.is_score(given) and tonumber(given)
  if given == "" or value and value >= 0 and value <= 1 then return given end
  checks.expected("progress", "a number from 0 to 1", given)
end

return {
  { "tag", ADDS, "mode jid tag...", function(ctx, args)
    if args[1] ~= "add" and args[1] ~= "remove" then checks.expected("mode", "add or remove", args[1]) end
    return tag.run(ctx, args[1] == "add", name(args, 2, "jid"), args, 3, names(args, 3, "tag"))
  end },
  { "tags", READS, "least offset count", function(ctx, args)
    return tag.top(ctx, time(args, 1, "least"), time(args, 2, "offset"), number(args, 3, "count", 0, PAGE))
  end },
  { "tagged", READS, "tag offset count", function(ctx, args)
    return tag.jobs(ctx, name(args, 1, "tag"), time(args, 2, "offset"), number(args, 3, "count", 0, PAGE))
  end },
  { "track", ADDS, "line number on jid", requests.row(function(ctx, args)
    return track.run(ctx, name(args, 4, "jid"), number(args, 3, "on", 0, 1) == 1)
  end) },
  { "tracked", READS, "", function(ctx) return track.all(ctx) end },
  { "log", ADDS, "line number jid message data", requests.row(function(ctx, args)
    return log.run(ctx, name(args, 3, "jid"), name(args, 4, "message"), object(args, 5))
  end) },
  { "report", ADDS, "line number worker jid token progress note text...", requests.row(function(ctx, args)
    local worker, jid = checks.word(args, 3, "worker"), name(args, 4, "jid")
    checks.groups(args, 8, 1)
    if not args[7] then checks.bad("a report has a note, or ''") end
    return report.run(ctx, worker, jid, tonumber(args[5]), fraction(args, 6), args[7], args, 8)
  end) },
}
