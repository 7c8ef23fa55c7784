-- allow: the bounds of a queue: how many jobs may wait, how often one may be lost.
local keys = require("base.keys")
local queue_bounds = require("nouns.queue.queue_bounds")
local event = require("nouns.event.event")
local queues = require("nouns.queue.queue")
local M = {}

-- `value` "": no bound any more. The queue is a known one from then on.
function M.set(ctx, name, option, value)
  local queue = keys.of_queue(ctx, name)
  queues.know(ctx, queue)
  queue_bounds.set(queue, option, value)
  event.changed(ctx, "queue:" .. name)
  return 1
end

-- What a bound is, "" for none.
function M.value(ctx, name, option) return call("HGET", keys.of_queue(ctx, name).options, option) or "" end

-- (option, value) pairs of what is set.
function M.get(ctx, name) return queue_bounds.all(keys.of_queue(ctx, name)) end

return M
