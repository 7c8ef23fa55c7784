-- pause: queues hand out nothing until they are resumed, or for a while.
local keys = require("base.keys")
local pauses = require("nouns.queue.pause")
local M = {}

-- `who` and `why` are kept for people; `length` is in ms, 0 for no end. Returns how many
-- queues changed.
function M.run(ctx, paused, who, why, length, args, first, last)
  local count = 0
  for i = first, last do
    local queue = keys.of_queue(ctx, args[i])
    local changed = paused and pauses.begin(ctx, queue, who, why, length) or not paused and pauses.stop(ctx, queue)
    if changed then count = count + 1 end
  end
  return count
end

return M
