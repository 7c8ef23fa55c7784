-- native_workers: the native door's rows about workers.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local checks = require("doors.checks")
local ids = require("doors.ids")
local requests = require("doors.requests")
local event = require("nouns.event.event")
local minutes = require("nouns.queue.minutes")
local workers = require("nouns.lease.worker")
local worker_jobs = require("verbs.worker_jobs")

local MOST_FIELDS, MOST_BYTES, MOST_ROWS, LONGEST_STACK = 32, 16384, 64, 65536
local DRAINS, READS = { "allow-oom" }, { "no-writes" }
local bad, name, number, optional, text = checks.bad, checks.name, checks.number, checks.optional, checks.text

-- Checks what a worker reports of itself. Returns the last index.
local function facts(args, first)
  local last, size = checks.groups(args, first, 2), 0
  if last - first >= 2 * MOST_FIELDS then bad("at most " .. MOST_FIELDS .. " fields") end
  for i = first, last, 2 do
    size = size + #name(args, i, "field") + #text(args, i + 1, args[i], checks.SHORT)
    if not workers.may_report(args[i]) then bad("a worker does not report the field " .. args[i]) end
  end
  if size > MOST_BYTES then bad("fields have at most " .. MOST_BYTES .. " bytes in all") end
  return last
end

-- The last row of the page before, as score and name; nil for the first page.
local function behind(args)
  if args[1] == "" then return nil, nil end
  return ids.score(args[1]), name(args, 2, "name")
end

return {
  { "worker_seen", DRAINS, "worker (field value)...", function(ctx, args)
    local quiet = workers.report(ctx, name(args, 1, "worker"), args, 2, facts(args, 2))
    minutes.continue(ctx)
    return { quiet and 1 or 0 }
  end },
  { "workers", READS, "after_seen after_name count", function(ctx, args)
    local seen, last = behind(args)
    return workers.list(ctx, seen, last, number(args, 3, "count", 0, MOST_ROWS))
  end },
  { "worker_jobs", READS, "worker cursor count", function(ctx, args)
    local place = args[2] and worker_jobs.place(args[2])
      or checks.expected("cursor", "the cursor that the previous page returned", args[2])
    return worker_jobs.run(ctx, optional(args, 1, "worker"), place, number(args, 3, "count", 1, worker_jobs.MOST))
  end },
  { "worker_quiet", DRAINS, "worker on", function(ctx, args)
    return workers.set_quiet(ctx, name(args, 1, "worker"), number(args, 2, "on", 0, 1) == 1) and 1 or 0
  end },
  { "worker_ask", DRAINS, "worker jid question", function(ctx, args)
    return event.asked(ctx, name(args, 1, "worker"), name(args, 2, "jid"), name(args, 3, "question"))
  end },
  { "worker_answer", DRAINS, "question answer", function(ctx, args)
    return event.answered(ctx, name(args, 1, "question"), text(args, 2, "answer", LONGEST_STACK))
  end },
  { "worker_forget", DRAINS, "line number worker...", requests.row(function(ctx, args)
    local last, known = checks.names(args, 3, "worker"), 0
    for i = 3, last do known = known + workers.forget(ctx, args[i]) end
    return known
  end) },
}
