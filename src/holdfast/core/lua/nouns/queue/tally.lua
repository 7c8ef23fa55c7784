-- tally: what happened in a queue off the straight path, counted for ever.
--
-- What the straight path does is counted without it: each put takes a sequence number, and
-- each pop and completion leaves a sample. `again` are numbers that no put took, `later`
-- puts that took none; popped, completed, failed and lost are those of days that are over.
local M = {}

M.FIELDS = {
  "again", "later", "popped", "completed", "failed", "retried", "lost", "timed-out", "cancelled", "day", "first",
}

function M.count(ctx, queue, what, by)
  if ctx.bounds.tallies then call("HINCRBY", queue.tallies, what, by) end
end

-- All fields by name.
function M.read(queue)
  local found, tallies = call("HMGET", queue.tallies, unpack_(M.FIELDS)), {}
  for i = 1, #M.FIELDS do tallies[M.FIELDS[i]] = tonumber(found[i] or 0) end
  return tallies
end

return M
