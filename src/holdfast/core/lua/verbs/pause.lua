-- pause: queues hand out nothing until they are told to go on, or for a while.
local keys = require("base.keys")
local pausing = require("nouns.pausing")
local M = {}

-- `who` and `why` are kept for people; `length` is in ms, 0 for no end. Returns how many
-- queues changed.
function M.run(at, paused, who, why, length, args, first, last)
  local count = 0
  for i = first, last do
    local queue = keys.of_queue(at, args[i])
    local changed = paused and pausing.begin(at, queue, who, why, length) or not paused and pausing.stop(at, queue)
    if changed then count = count + 1 end
  end
  return count
end

return M
