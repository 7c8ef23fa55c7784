-- minutes: what happened in a queue, minute by minute, and the tick that notes it.
local keys = require("base.keys")
local minutes = require("nouns.minutes")
local M = {}

-- Lines from `since` (ms) on, each a moment in ms with put, popped, completed, failed,
-- retried, lost, timed out and cancelled since the queue was first used; the last is now.
function M.run(ctx, name, since) return minutes.since(ctx, keys.of_queue(ctx, name), since) end

-- Notes the minute of each queue, unless that was done. Returns how many queues.
function M.tick(ctx, args, first, last)
  for i = first, last do minutes.note(ctx, keys.of_queue(ctx, args[i])) end
  return last - first + 1
end

return M
