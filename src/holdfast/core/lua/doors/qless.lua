-- qless: the commands of the protocol that reqless came of, as one script that is run
-- for every call. They are the same core's under other names, so this file and those
-- beside it translate, and nothing else.
--
-- The root is reqless's, and the forms are. Clients of both kinds may share a database:
-- they put, pop and settle each other's jobs.
local keys = require("base.keys")
local order = require("base.order_wide")
local record = require("base.record_wide")
local bounds = require("doors.protocol.bounds")
local calling = require("doors.protocol.calling")
local commands = require("doors.protocol.commands")
local looking = require("doors.protocol.looking")
local putting = require("doors.protocol.putting")
local settling = require("doors.protocol.settling")
local accent = require("doors.qless.accent")
local events = require("doors.qless.events")
local older = require("doors.qless.older")
local completed = require("nouns.completed_wide")
local history = require("nouns.history")
local holders = require("nouns.holders")
local worker = require("nouns.worker")

-- No lines of this protocol's history: a retry is none, going on in another queue is two.
local UNTOLD = { [history.RETRIED] = true, [history.ADVANCED] = true }

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
  if name == "put" then return putting["queue.put"] end
  if name == "complete" then return older.complete end
  if name == "heartbeat" then return settling["job.heartbeat"] end
  if name == "get" then return looking["job.get"] end
  return older[name] or TODAY[name] and commands.find(TODAY[name])
end

-- What verbs get as `at`; see doors/reqless.
local AT = {
  order = order, record = record, bounds = bounds, events = events, throttles = holders, workers = worker,
  budgets = false, completed = completed, ended = false, index = false, accent = accent, untold = UNTOLD,
  application = "qless", keys = keys.FIXED, packed = false, settings = false, now = 0, flags = 0, watched = false, released = 0,
}

return calling.run(AT, find)
