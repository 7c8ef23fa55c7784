-- native: the dialect of our own clients, and what a dialect is.
--
-- A dialect is the `ctx` that a door gives to verbs: the forms in which that door keeps its data, and how much one call
-- may do. A form that is false does not exist there. Verbs and nouns read these names of it:
--
--   order         the scores of jobs in a queue, from priority and time (base/order)
--   record        the packed record of a job (base/record)
--   bounds        how much one call may move, release, examine; see below
--   events        what is published when a job changes
--   throttles     the slots of throttles, and the jobs that wait for them
--   workers       which jobs a worker has, if that is kept beside the leases
--   budgets       tries and losses as two numbers; false: one number for both
--   completed     the complete jobs, in the order of their ends
--   cancelled     what is kept of a cancelled job
--   index         the sets of jobs by state
--   dialect       words of replies and refusals that differ between the older protocols
--   omitted_lines lines of a job's history that are not written
--   application   the namespace of settings that have none
--
-- Every call fills the rest: `keys` of the root, `packed`, its fields, of which `settings` are unpacked when they are
-- needed, `now` (ms), `flags` of the root, `watched`: false, or the names whose change is published at its end,
-- `released`: how many jobs the call made ready for others, `followed`: how many it ended because of others, and
-- `history`: false, or the limits of histories.
local order = require("base.order")
local record = require("base.record")
local budget = require("nouns.lease.budget")
local cancelled = require("nouns.job.cancelled")
local completed = require("nouns.job.completed")
local event = require("nouns.event.event")
local index = require("nouns.job.index")
local throttle = require("nouns.throttle.throttle")

local BOUNDS = {
  due = 100, lost = 100, upkeep = 112, -- of a queue; and of a call in all, in lost leases and what takes as long
  repeats_loss = false, released = 100, skipped = 200, reply = 8388608, message = 16384,
  links = 2048, settled = 512, rows = 600, retention_slack = 64, ages = 64, tags = 200, history = 262144,
  steps = 4, -- steps of the retention: as many jobs as a call can complete
  tallies = true, labels = 64, -- these of a job
  unit = 1, earliest = 0, weight = 1000, -- of recurring jobs: ms of a score, the first moment, how heavy in one call
}

return {
  order = order.native, record = record.native, bounds = BOUNDS, events = event, throttles = throttle, workers = false,
  budgets = budget, completed = completed, cancelled = cancelled, index = index, dialect = false,
  omitted_lines = {}, application = "holdfast", keys = false, packed = false, settings = false,
  now = 0, flags = 0, watched = false, released = 0, followed = 0, history = false,
}
