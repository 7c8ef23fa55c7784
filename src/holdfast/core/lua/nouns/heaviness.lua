-- heaviness: how much of a call some jobs take when they end.
local record = require("base.record")
local refuse = require("base.refuse")
local M = {}

local FLAGGED, NAMED = 2, 5 -- a job that is more than its record, one that names throttles

-- Refuses to end the first `count` of these records in one call if that took too long. A
-- worker that settles jobs as they end never comes near it.
function M.check(ctx, records, count)
  local weight, most = 0, ctx.bounds.settled
  for i = 1, count do
    local low, high = byte(records[i] or "\0\0\0", 2, 3)
    local flags = low + 256 * high
    weight = weight + (record.is_plain(flags) and 1 or record.has(flags, record.FLAG.NAMED) and NAMED or FLAGGED)
  end
  if weight <= most then return end
  refuse.call("TOO_MANY", "at most " .. most .. " a call: a job counts 1, with tags and the like 2, with throttles 5")
end

return M
