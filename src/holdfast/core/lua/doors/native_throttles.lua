-- native_throttles: the native door's rows for throttles and the limits of queues.
--
-- A row is the verb, its flags, the names of its arguments, and the function that makes the call.
local bounds = require("base.bounds")
local checks = require("doors.checks")
local ids = require("doors.ids")
local requests = require("doors.requests")
local queue_bounds = require("nouns.queue.queue_bounds")
local allow = require("verbs.allow")
local throttles = require("verbs.throttle")

local MOST, HIGHEST = bounds.BATCH, bounds.MAXIMUM
local ADDS, DRAINS, READS = {}, { "allow-oom" }, { "no-writes" }
local names, number, span, throttle = checks.names, checks.number, checks.span, ids.throttle

return {
  { "queue_set", ADDS, "line number queue option value [seen]", requests.row(function(ctx, args)
    local queue, option, value = checks.name(args, 3, "queue"), args[4], args[5]
    local most = queue_bounds.MOST[option] or checks.expected("option", "max-waiting or max-losses", option)
    if value ~= "" then value = ("%.0f"):format(number(args, 5, option, option == "max-waiting" and 1 or 0, most)) end
    checks.seen(args, 6, option .. " of queue " .. queue, allow.value(ctx, queue, option))
    return allow.set(ctx, queue, option, value)
  end) },
  { "queue_get", READS, "queue", function(ctx, args) return allow.get(ctx, checks.name(args, 1, "queue")) end },
  { "throttle_set", ADDS, "line number id maximum expires [seen]", requests.row(function(ctx, args)
    local id, maximum = throttle(args, 3), args[4] ~= "" and number(args, 4, "maximum", 0, HIGHEST) or nil
    local length = span(args, 5, "expires")
    checks.seen(args, 6, "the maximum of " .. id, ("%.0f"):format(throttles.get(ctx, id)[1]))
    return throttles.set(ctx, id, maximum, length)
  end) },
  { "throttle_get", READS, "id", function(ctx, args) return throttles.get(ctx, throttle(args, 1)) end },
  { "throttle_delete", DRAINS, "line number id", requests.row(function(ctx, args)
    return throttles.delete(ctx, throttle(args, 3))
  end) },
  { "throttle_release", DRAINS, "line number id jid...", requests.row(function(ctx, args)
    local id, last = throttle(args, 3), names(args, 4, "jid")
    return throttles.release(ctx, id, args, 4, last)
  end) },
  { "throttles", READS, "cursor count", function(ctx, args)
    return throttles.list(ctx, ids.cursor(args, 1), number(args, 2, "count", 1, MOST))
  end },
}
