-- backoff: how long a job waits before it is tried again.
--
-- A job may bring its own, and so may the code that failed; for the others it is that of
-- base/bounds.lua. Jitter comes from a digest of jid and try: a call that is sent again, and
-- a clock that is stopped, find the same pause.
local bounds = require("base.bounds")
local options = require("nouns.job.options")
local M = {}

local MOST_DOUBLINGS = 64 -- beyond any cap

-- A number from -1 to 1 that is the same whenever it is asked for.
local function spread(jid, try) return tonumber(sub(digest(jid .. try), 1, 8), 16) / 2147483647.5 - 1 end

-- The pause in ms before the next try of a job whose try has just ended. `code` is the backoff
-- of its code, nil for none.
function M.pause(ctx, jid, r, code)
  local own, try = options.of(ctx, jid, r).backoff or code or bounds.BACKOFF, r.retries - r.remaining + 1
  local kind, first, most, jitter = own[1], own[2], own[3], own[4]
  local doublings = kind == "exponential" and math.min(math.max(try - 1, 0), MOST_DOUBLINGS) or 0
  local pause = first * 2 ^ doublings
  if jitter > 0 then pause = pause * (1 + spread(jid, try) * jitter / 100) end
  return floor(math.min(pause, most))
end

return M
