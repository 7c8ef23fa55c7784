-- pause: a queue hands out nothing until it is told to go on.
local late = require("base.late")
local keys = require("base.keys")
local queues = require("nouns.queue")
local M = {}

local call
late.bind(function() call = redis.call end)

-- `who` and `why` are kept for people. Returns how many queues changed.
function M.run(at, paused, who, why, args, first, last)
  local count = 0
  for i = first, last do
    local queue = keys.of_queue(at, args[i])
    if queues.set_paused(queue, paused) then count = count + 1 end
    if paused then
      call("HSET", queue.options, "paused-by", who, "paused-why", why, "paused-since", at.now)
    else
      call("HDEL", queue.options, "paused-by", "paused-why", "paused-since")
    end
  end
  return count
end

return M
