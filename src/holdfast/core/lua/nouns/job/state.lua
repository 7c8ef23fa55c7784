-- state: what a job can be, and which moves between them are lawful.
local layout = require("base.layout")
local M = {}

M.WAITING, M.RUNNING, M.COMPLETE, M.FAILED, M.SCHEDULED, M.DEPENDS, M.THROTTLED, M.STALLED = 1, 2, 3, 4, 5, 6, 7, 8

M.NAME = layout.STATES

-- The states that may follow each, one letter for each of the eight. Put and move may
-- take a job from anywhere, so 1, 5, 6 and 7 are open to every state; the rest is the life
-- of a lease. The job of a large group is complete without one.
local LAWFUL =
  "12-4567-" .. -- waiting
  "12345678" .. -- running
  "1---567-" .. -- complete
  "1-3-567-" .. -- failed
  "1---567-" .. -- scheduled
  "1-34567-" .. -- depends
  "12-4567-" .. -- throttled
  "12--567-" -- stalled
local NEVER = 45 -- "-"

-- Whether a job found in the ready set may be handed out.
function M.is_ready(r)
  local state = r.state
  return state == 1 or state == 7 or state == 8
end

-- The one place where a job changes state.
function M.move(r, to)
  if byte(LAWFUL, r.state * 8 - 8 + to) == NEVER then
    error("unlawful move from " .. M.NAME[r.state] .. " to " .. M.NAME[to])
  end
  r.state = to
end

return M
