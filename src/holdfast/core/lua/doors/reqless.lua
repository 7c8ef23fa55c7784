-- reqless: that protocol's commands, as one script that is run for every call.
--
-- This file finds the command, and chooses the forms in which the core keeps its data.
local order = require("base.order_wide")
local record = require("base.record_wide")
local dialect = require("doors.protocol.dialect")
local bounds = require("doors.protocol.bounds")
local script_call = require("doors.protocol.script_call")
local commands = require("doors.protocol.commands")
local views = require("doors.protocol.views")
local pop = require("doors.protocol.pop")
local put = require("doors.protocol.put")
local lifecycle = require("doors.protocol.lifecycle")
local event_log = require("nouns.event.event_log")
local completed = require("nouns.job.completed_wide")
local history = require("nouns.job.history")
local throttle_wide = require("nouns.throttle.throttle_wide")
local worker = require("nouns.lease.worker")

-- No lines of this protocol's history: a retry is none, moving on to another queue is two.
local OMITTED_LINES = { [history.RETRIED] = true, [history.ADVANCED] = true }

local function find(name)
  if name == "queue.pop" then return pop["queue.pop"] end
  if name == "queue.put" then return put["queue.put"] end
  if name == "job.complete" then return lifecycle["job.complete"] end
  if name == "job.heartbeat" then return lifecycle["job.heartbeat"] end
  if name == "job.get" then return views["job.get"] end
  return commands.find(name)
end

-- The `ctx` that verbs get, as in doors/native.
local CTX = {
  order = order, record = record, bounds = bounds, events = event_log, throttles = throttle_wide, workers = worker,
  budgets = false, completed = completed, cancelled = false, index = false, dialect = dialect,
  omitted_lines = OMITTED_LINES, application = "reqless", keys = false,
  packed = false, settings = false, now = 0, flags = 0, watched = false, released = 0,
}

return script_call.run(CTX, find)
