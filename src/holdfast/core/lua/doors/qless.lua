-- qless: the commands of the protocol that reqless came of, as one script that is run
-- for every call. They are the same core's under other names, so this file and those
-- beside it translate, and nothing else.
--
-- The root is reqless's, and the forms are. Clients of both kinds may share a database:
-- they put, pop and settle each other's jobs.
local script_call = require("doors.protocol.script_call")
local commands = require("doors.protocol.commands")
local views = require("doors.protocol.views")
local put = require("doors.protocol.put")
local lifecycle = require("doors.protocol.lifecycle")
local dialect = require("doors.dialects.protocol")
local words = require("doors.dialects.qless")
local events = require("doors.qless.events")
local older = require("doors.qless.older")

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

return script_call.run(dialect.of(words, events, "qless"), find)
