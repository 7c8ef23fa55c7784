-- native_queues: the native door's rows for looking and for setting things.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local bounds = require("base.bounds")
local keys = require("base.keys")
local checks = require("doors.checks")
local ids = require("doors.ids")
local requests = require("doors.requests")
local configure = require("verbs.configure")
local counts = require("verbs.counts")
local inspect = require("verbs.inspect")
local pause = require("verbs.pause")
local stats = require("verbs.stats")

local MOST = bounds.BATCH
local MOST_TICKED = 128
local ADDS, DRAINS, READS = {}, { "allow-oom" }, { "no-writes" }
local name, names, number, time = checks.name, checks.names, checks.number, checks.time

return {
  { "counts", READS, "queue...", function(ctx, args) return counts.run(ctx, args, 1, names(args, 1, "queue")) end },
  { "queues", READS, "", function(ctx) return counts.queues(ctx) end },
  { "peek", READS, "queue offset count", function(ctx, args)
    local queue = keys.of_queue(ctx, name(args, 1, "queue"))
    return inspect.peek(ctx, queue, time(args, 2, "offset"), number(args, 3, "count", 0, MOST))
  end },
  { "job_get", READS, "jid...", function(ctx, args) return inspect.jobs(ctx, args, 1, names(args, 1, "jid")) end },
  { "jobs_complete", READS, "offset count", function(ctx, args)
    return inspect.completed(ctx, time(args, 1, "offset"), time(args, 2, "count"))
  end },
  { "failed", READS, "group offset count", function(ctx, args)
    return inspect.failed(ctx, name(args, 1, "group"), time(args, 2, "offset"), time(args, 3, "count"))
  end },
  { "stats", READS, "queue day", function(ctx, args)
    return stats.run(ctx, name(args, 1, "queue"), time(args, 2, "day"))
  end },
  { "pause", DRAINS, "line number on who why length queue...", requests.row(function(ctx, args)
    local on, who = number(args, 3, "on", 0, 1) == 1, checks.optional(args, 4, "who")
    local why, length = checks.text(args, 5, "why", checks.SHORT), checks.span(args, 6, "length")
    return pause.run(ctx, on, who, why, length, args, 7, names(args, 7, "queue"))
  end) },
  { "config_get", READS, "key...", function(ctx, args) return configure.get(ctx, args, 1, names(args, 1, "key")) end },
  { "config_set", ADDS, "key value [seen]", function(ctx, args)
    local key = ids.setting(args)
    checks.seen(args, 3, "setting " .. key, configure.value(ctx, key), args[2])
    return configure.set(ctx, key, args[2])
  end },
  { "config_unset", ADDS, "line number key [seen]", requests.row(function(ctx, args)
    local key = name(args, 3, "key")
    checks.seen(args, 4, "setting " .. key, configure.value(ctx, key))
    return configure.unset(ctx, key)
  end) },
  { "minutes", READS, "queue since", function(ctx, args)
    return stats.minutes(ctx, name(args, 1, "queue"), time(args, 2, "since"))
  end },
  { "tick", DRAINS, "queue...", function(ctx, args)
    local last = names(args, 1, "queue")
    if last > MOST_TICKED then checks.bad("at most " .. MOST_TICKED .. " queues") end
    return stats.tick(ctx, args, 1, last)
  end },
  { "sweep", DRAINS, "line number", requests.row(function(ctx) return configure.sweep(ctx) end) },
}

