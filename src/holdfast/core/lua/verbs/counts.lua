-- counts: the sizes of the very sets the core works on. Writes nothing: a due
-- job counts as waiting without being moved, a lease past its end as stalled.
local late = require("base.late")
local keys = require("base.keys")
local pausing = require("nouns.pausing")
local queues = require("nouns.queue")
local M = {}

local call
late.bind(function() call = redis.call end)

local function row(at, name)
  local queue = keys.of_queue(at, name)
  local due = call("ZCOUNT", queue.scheduled, "-inf", at.now)
  local stalled = call("ZCOUNT", queue.leases, "-inf", at.now)
  local _, flags = queues.control(queue)
  return {
    name, call("ZCARD", queue.waiting) + due, call("ZCARD", queue.leases) - stalled, stalled,
    call("ZCARD", queue.throttled), call("ZCARD", queue.scheduled) - due, call("ZCARD", queue.depends),
    call("ZCARD", queue.recurring), pausing.record(at, queue, flags) and 1 or 0, call("ZCARD", queue.failed),
  }
end

-- The known queues, in order of first use.
function M.queues(at) return call("ZRANGE", at.keys.queues, 0, -1) end

-- One row per queue named, or per known queue if none is.
function M.run(at, names, first, last)
  local rows = {}
  if last < first then names, first = M.queues(at), 1 last = #names end
  for i = first, last do rows[#rows + 1] = row(at, names[i]) end
  return rows
end

return M
