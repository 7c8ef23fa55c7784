-- native_limits: what a native root takes of the commands of the reqless protocol.
--
-- Their translations look at what that protocol refuses. This file knows what each argument
-- is, so that native names, numbers, lists and data keep their limits: checked before the
-- command runs. What is missing or unreadable is left to the translation, which refuses it.
local checks = require("doors.checks")
local kinds = require("doors.native_kinds")
local M = {}

local MOST_ARGUMENTS = 512
local MOST = { ["job.timeout"] = 128 } -- of what costs more each
local look_at = kinds.look_at

-- The keys of pairs that are looked at.
local PAIRS = {
  priority = "priority", retries = "retries", backlog = "backlog", tags = "tags", throttles = "throttles",
  depends = "depends", delay = "seconds", interval = "interval", data = "data", klass = "klass", queue = "queue",
  next = "queue",
}

-- What the arguments of a command are; those of others are short texts.
local PUT = "worker queue jid klass data seconds pairs"
local ARGUMENTS = {
  ["queue.put"] = PUT, ["job.requeue"] = PUT, ["queue.unfail"] = "queue group unfailed",
  ["queue.pop"] = "queue worker count", ["queue.peek"] = "queue whole count",
  ["jobs.completed"] = "whole whole", ["tags.top"] = "whole whole", ["jobs.tagged"] = "tag whole whole",
  ["jobs.failedByGroup"] = "group whole whole", ["queue.jobsByState"] = "short short whole whole",
  ["job.heartbeat"] = "jid worker data", ["job.complete"] = "jid worker queue data any...",
  ["job.completeAndRequeue"] = "jid worker queue data next",
  ["job.fail"] = "jid worker group message data", ["job.retry"] = "jid queue worker seconds group message",
  ["job.timeout"] = "jid...", ["job.cancel"] = "jid...", ["job.getMulti"] = "jid...",
  ["job.setPriority"] = "jid priority", ["job.log"] = "jid line note",
  ["job.addTag"] = "jid tag...", ["job.removeTag"] = "jid tag...",
  ["job.addDependency"] = "jid jid...", ["job.removeDependency"] = "jid jid...",
  ["job.track"] = "jid", ["job.untrack"] = "jid",
  ["queue.recurAtInterval"] = "queue template klass data interval seconds pairs",
  ["recurringJob.update"] = "jid pairs", ["recurringJob.cancel"] = "jid",
  ["recurringJob.addTag"] = "jid tag...", ["recurringJob.removeTag"] = "jid tag...",
  ["queue.pause"] = "queue...", ["queue.unpause"] = "queue...", ["queue.forget"] = "queue...",
  ["worker.forget"] = "worker...", ["config.set"] = "key value", ["config.unset"] = "key",
  ["throttle.set"] = "throttle maximum seconds", ["throttle.delete"] = "throttle",
  ["throttle.release"] = "throttle jid...", ["queue.throttle.set"] = "queue maximum",
  ["queueIdentifierPatterns.setAll"] = "identifiers", ["queuePriorityPatterns.setAll"] = "patterns",
}

local function look_at_pairs(args, first)
  for i = first, #args - 1, 2 do
    local kind = PAIRS[args[i]]
    if kind then look_at(kind, args, i + 1) end
  end
end

-- A next queue and pairs, or pairs of which one is the next queue.
local function look_at_next(args, i)
  look_at("queue", args, i)
  look_at_pairs(args, (#args - i) % 2 == 0 and i + 1 or i)
end

-- Refuses what a native root does not take. The arguments of the command begin at args[3].
function M.check(command, args)
  local i, last = 3, checks.groups(args, 3, 1, MOST[command] or MOST_ARGUMENTS)
  for kind, more in gmatch(ARGUMENTS[command] or "short...", "(%a+)(%.*)") do
    if kind == "pairs" then return look_at_pairs(args, i) end
    repeat
      if i > last then return end
      if kind == "next" then return look_at_next(args, i) end
      look_at(kind, args, i)
      i = i + 1
    until more == ""
  end
end

return M
