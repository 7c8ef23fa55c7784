-- qless: the commands of the protocol that reqless came of, as one script that is run
-- for every call. They are the same core's under other names, so this file and those
-- beside it translate, and nothing else.
--
-- The root is reqless's, and the forms are. Clients of both kinds may share a database:
-- they put, pop and settle each other's jobs.
local order = require("base.order_wide")
local record = require("base.record_wide")
local bounds = require("doors.protocol.bounds")
local script_call = require("doors.protocol.script_call")
local commands = require("doors.protocol.commands")
local views = require("doors.protocol.views")
local put = require("doors.protocol.put")
local lifecycle = require("doors.protocol.lifecycle")
local dialect = require("doors.qless.dialect")
local events = require("doors.qless.events")
local older = require("doors.qless.older")
local completed = require("nouns.job.completed_wide")
local history = require("nouns.job.history")
local throttle_wide = require("nouns.throttle.throttle_wide")
local worker = require("nouns.lease.worker")

-- No lines of this protocol's history: a retry is none, moving on to another queue is two.
local OMITTED_LINES = { [history.RETRIED] = true, [history.ADVANCED] = true }

-- Commands that have another name today, and nothing else.
local TODAY = {
  put = "queue.put", requeue = "job.requeue", fail = "job.fail", retry = "job.retry", heartbeat = "job.heartbeat",
  timeout = "job.timeout", cancel = "job.cancel", get = "job.get", multiget = "job.getMulti", log = "job.log",
  priority = "job.setPriority", failed = "jobs.failedByGroup", jobs = "queue.jobsByState",
  queues = "queue.counts", length = "queue.length", stats = "queue.stats", pause = "queue.pause",
  unpause = "queue.unpause", ["queue.forget"] = "queue.forget", workers = "worker.jobs",
  ["worker.deregister"] = "worker.forget", unrecur = "recurringJob.cancel", ["recur.get"] = "recurringJob.get",
  ["recur.update"] = "recurringJob.update", ["recur.tag"] = "recurringJob.addTag",
  ["recur.untag"] = "recurringJob.removeTag", ["config.set"] = "config.set", ["config.unset"] = "config.unset",
  ["throttle.set"] = "throttle.set", ["throttle.get"] = "throttle.get", ["throttle.delete"] = "throttle.delete",
  ["throttle.locks"] = "throttle.locks", ["throttle.pending"] = "throttle.pending",
  ["throttle.release"] = "throttle.release", ["queue.throttle.get"] = "queue.throttle.get",
  ["queue.throttle.set"] = "queue.throttle.set",
}

local function find(name)
  if name == "pop" then return older.pop end
  if name == "put" then return put["queue.put"] end
  if name == "complete" then return older.complete end
  if name == "heartbeat" then return lifecycle["job.heartbeat"] end
  if name == "get" then return views["job.get"] end
  return older[name] or TODAY[name] and commands.find(TODAY[name])
end

-- The `ctx` that verbs get; see doors/reqless.
local CTX = {
  order = order, record = record, bounds = bounds, events = events, throttles = throttle_wide, workers = worker,
  budgets = false, completed = completed, cancelled = false, index = false, dialect = dialect,
  omitted_lines = OMITTED_LINES, application = "qless", keys = false,
  packed = false, settings = false, now = 0, flags = 0, watched = false, released = 0,
}

return script_call.run(CTX, find)
