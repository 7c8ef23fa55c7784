-- state: what a job can be, and which moves between them are lawful.
local late = require("base.late")
local M = {}

M.WAITING, M.RUNNING, M.COMPLETE, M.FAILED, M.SCHEDULED, M.DEPENDS, M.THROTTLED, M.STALLED = 1, 2, 3, 4, 5, 6, 7, 8

M.NAME = { "waiting", "running", "complete", "failed", "scheduled", "depends", "throttled", "stalled" }

-- LAWFUL[from] names the states that may follow. Put and move may take a job from
-- anywhere, so 1, 5, 6 and 7 are open to every state; the rest is the life of a lease.
local LAWFUL = {
  "124567", -- waiting
  "12345678", -- running
  "1567", -- complete
  "1567", -- failed
  "1567", -- scheduled
  "1567", -- depends
  "124567", -- throttled
  "12567", -- stalled
}

local find
late.bind(function() find = string.find end)

-- Whether a job found in the ready set may be handed out.
function M.is_ready(r)
  local state = r.state
  return state == 1 or state == 7 or state == 8
end

-- The one place where a job changes state.
function M.move(r, to)
  if not find(LAWFUL[r.state], to, 1, true) then
    error("unlawful move from " .. M.NAME[r.state] .. " to " .. M.NAME[to])
  end
  r.state = to
end

return M
