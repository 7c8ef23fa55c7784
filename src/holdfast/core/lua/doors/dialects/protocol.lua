-- protocol: the dialect of the older protocols; see `native` for what the names mean.
--
-- A call of that protocol moves, releases and looks at as much as it is asked to.
local order = require("base.order_reqless")
local record = require("base.record_reqless")
local completed = require("nouns.job.completed_reqless")
local history = require("nouns.job.history")
local throttle_reqless = require("nouns.throttle.throttle_reqless")
local worker = require("nouns.lease.worker")
local M = {}

local BOUNDS = {
  due = false, lost = false, upkeep = 1 / 0, repeats_loss = true,
  reply = 1 / 0, message = 2147483647, retention_slack = 0, ages = 1,
  skipped = 1 / 0, steps = 8, tags = 1 / 0, history = 1 / 0,
  tallies = false, labels = 1 / 0, parents = 1 / 0, walk = 1 / 0,
  hidden = true, -- a queue that was forgotten is not made known by its templates
  unit = 1000, earliest = -1 / 0, weight = 1 / 0,
}
-- No lines of this protocol's history: a retry is none, moving on to another queue is two.
local OMITTED_LINES = { [history.RETRIED] = true, [history.ADVANCED] = true }

-- The dialect of one of them, with its words, its events, and the application that settings belong to.
function M.of(words, events, application)
  return {
    order = order, record = record, bounds = BOUNDS, events = events, throttles = throttle_reqless, workers = worker,
    budgets = false, completed = completed, cancelled = false, index = false, dialect = words,
    omitted_lines = OMITTED_LINES, application = application, keys = false, packed = false, settings = false,
    now = 0, flags = 0, watched = false, released = 0, followed = 0, history = false,
  }
end

return M
