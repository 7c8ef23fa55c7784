-- state: what a job can be, and which moves between them are lawful.
local M = {}

M.WAITING, M.RUNNING, M.COMPLETE, M.FAILED, M.SCHEDULED, M.DEPENDS, M.THROTTLED, M.STALLED = 1, 2, 3, 4, 5, 6, 7, 8

M.NAME = { "waiting", "running", "complete", "failed", "scheduled", "depends", "throttled", "stalled" }

-- LAWFUL[from][to]. Put and move may take a job from anywhere, so the first
-- four placings are open to every state; the rest is the life of a lease.
local PLACED = { [1] = true, [5] = true, [6] = true, [7] = true }
local READY = { [1] = true, [2] = true, [5] = true, [6] = true, [7] = true }
local LAWFUL = {
  READY, -- waiting
  { [1] = true, [2] = true, [3] = true, [4] = true, [5] = true, [6] = true, [7] = true, [8] = true }, -- running
  PLACED, -- complete
  PLACED, -- failed
  PLACED, -- scheduled
  PLACED, -- depends
  READY, -- throttled
  READY, -- stalled
}

-- Whether a job found in the ready set may be handed out.
function M.is_ready(r)
  local state = r.state
  return state == 1 or state == 7 or state == 8
end

-- The one place where a job changes state.
function M.move(r, to)
  if not LAWFUL[r.state][to] then
    error("unlawful move from " .. M.NAME[r.state] .. " to " .. M.NAME[to])
  end
  r.state = to
end

return M
