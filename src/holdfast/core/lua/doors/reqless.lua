-- reqless: that protocol's commands, as one script that is run for every call.
--
-- This file finds the command and says in which forms the core keeps its things.
local keys = require("base.keys")
local order = require("base.order_wide")
local record = require("base.record_wide")
local accent = require("doors.protocol.accent")
local bounds = require("doors.protocol.bounds")
local calling = require("doors.protocol.calling")
local commands = require("doors.protocol.commands")
local looking = require("doors.protocol.looking")
local popping = require("doors.protocol.popping")
local putting = require("doors.protocol.putting")
local settling = require("doors.protocol.settling")
local event_log = require("nouns.event_log")
local completed = require("nouns.completed_wide")
local history = require("nouns.history")
local holders = require("nouns.holders")
local worker = require("nouns.worker")

-- No lines of this protocol's history: a retry is none, going on in another queue is two.
local UNTOLD = { [history.RETRIED] = true, [history.ADVANCED] = true }

local function find(name)
  if name == "queue.pop" then return popping["queue.pop"] end
  if name == "queue.put" then return putting["queue.put"] end
  if name == "job.complete" then return settling["job.complete"] end
  if name == "job.heartbeat" then return settling["job.heartbeat"] end
  if name == "job.get" then return looking["job.get"] end
  return commands.find(name)
end

-- What verbs get as `at`. The forms are known before a call is made, so a script
-- does not look them up (core/script), and of the keys not those that are fixed.
local AT = {
  order = order, record = record, bounds = bounds, events = event_log, throttles = holders, workers = worker,
  budgets = false, completed = completed, ended = false, index = false, accent = accent, untold = UNTOLD,
  application = "reqless", keys = keys.FIXED, packed = false, settings = false, now = 0, flags = 0, watched = false, released = 0,
}

return calling.run(AT, find)
