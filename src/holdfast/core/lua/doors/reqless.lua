-- reqless: that protocol's commands, as one script that is run for every call.
--
-- `EVALSHA <sha> 0 <command> <now> [argument]…`. The caller brings the time, in
-- seconds; inside it is ms. This file opens the root and finds the command.
local keys = require("base.keys")
local order = require("base.order_wide")
local record = require("base.record_wide")
local root = require("base.root")
local looking = require("doors.protocol.looking")
local popping = require("doors.protocol.popping")
local putting = require("doors.protocol.putting")
local recurring = require("doors.protocol.recurring")
local setting = require("doors.protocol.setting")
local settling = require("doors.protocol.settling")
local words = require("doors.protocol.words")
local event_log = require("nouns.event_log")
local history = require("nouns.history")
local holders = require("nouns.holders")
local worker = require("nouns.worker")

-- This protocol moves, releases and looks at as much as it is asked to.
local BOUNDS = {
  due = false, lost = false, chores = 1 / 0, retell = true, reply = 1 / 0, message = 2147483647, slack = 0, ages = 1,
  odd = 1 / 0, steps = 8, tags = 1 / 0, history = 1 / 0,
  tallies = false, labels = 1 / 0,
  unit = 1000, earliest = -1 / 0, weight = 1 / 0,
}

-- A retry is no line of this protocol's history.
local UNTOLD = { [history.RETRIED] = true }

local function find(name)
  if name == "queue.pop" then return popping["queue.pop"] end
  if name == "queue.put" then return putting["queue.put"] end
  if name == "job.complete" then return settling["job.complete"] end
  if name == "job.heartbeat" then return settling["job.heartbeat"] end
  if name == "job.get" then return looking["job.get"] end
  return settling[name] or looking[name] or setting[name] or putting[name] or popping[name] or recurring[name]
end

-- How this protocol says what the others of its kind say too: read by doors/protocol.
local ACCENT = { put_queue = "queue" }

-- What verbs get as `at`. The forms are known before a call is made, so a script
-- does not look them up (core/script.py).
local AT = {
  order = order, record = record, bounds = BOUNDS, events = event_log, throttles = holders, workers = worker,
  accent = ACCENT, untold = UNTOLD, application = "reqless", keys = false, packed = false, settings = false, now = 0,
  flags = 0, watched = false, released = 0,
}

local function open(now)
  AT.keys = keys.shared()
  return root.open_at(AT, keys.SHARED, now * 1000)
end

if #KEYS > 0 then words.refuse("No Keys should be provided") end
if not ARGV[1] then words.refuse("Must provide a command") end
local run = find(ARGV[1]) or words.refuse("Unknown command " .. ARGV[1])
return run(open(words.number(ARGV, 2, 'Arg "now" missing or not a number')), ARGV)
