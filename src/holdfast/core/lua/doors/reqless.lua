-- reqless: that protocol's commands, as one script that is run for every call.
--
-- This file finds the command; `dialects` has the forms in which the core keeps its data for it.
local dialect = require("doors.dialects.protocol")
local words = require("doors.dialects.reqless")
local script_call = require("doors.protocol.script_call")
local commands = require("doors.protocol.commands")
local views = require("doors.protocol.views")
local pop = require("doors.protocol.pop")
local put = require("doors.protocol.put")
local lifecycle = require("doors.protocol.lifecycle")
local event_log = require("nouns.event.event_log")

local function find(name)
  if name == "queue.pop" then return pop["queue.pop"] end
  if name == "queue.put" then return put["queue.put"] end
  if name == "job.complete" then return lifecycle["job.complete"] end
  if name == "job.heartbeat" then return lifecycle["job.heartbeat"] end
  if name == "job.get" then return views["job.get"] end
  return commands.find(name)
end

return script_call.run(dialect.of(words, event_log, "reqless"), find)
