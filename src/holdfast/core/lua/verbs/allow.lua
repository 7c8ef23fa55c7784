-- allow: what a queue is told to put up with.
local keys = require("base.keys")
local allowance = require("nouns.allowance")
local event = require("nouns.event")
local queues = require("nouns.queue")
local M = {}

-- `value` "": no bound any more. The queue is a known one from then on.
function M.set(at, name, option, value)
  local queue = keys.of_queue(at, name)
  queues.know(at, queue)
  allowance.set(queue, option, value)
  event.changed(at, "queue:" .. name)
  return 1
end

-- (option, value) pairs of what is set.
function M.get(at, name) return allowance.all(keys.of_queue(at, name)) end

return M
