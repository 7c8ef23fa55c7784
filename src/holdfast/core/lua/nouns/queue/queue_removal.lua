-- queue_removal: a queue is forgotten.
local days = require("nouns.queue.days")
local event = require("nouns.event.event")
local queues = require("nouns.queue.queue")
local M = {}

-- Takes the queue off the list of known ones. Returns 1, or 0 if it was not there.
function M.forget(ctx, queue)
  queues.forget(queue)
  return call("ZREM", ctx.keys.queues, queue.name)
end

-- What an empty queue leaves goes: its limit, its pause, its place in the order. A lease
-- length of its own is configuration and stays, and so does the bit of those who may
-- wait; a token in the wake key may have lowered it.
function M.reset(ctx, queue)
  local idle = queues.is_idle(queue) or call("EXISTS", queue.wake_key) == 1
  local _, _, _, heartbeat = queues.control(queue)
  call("UNLINK", queue.wake_key, queue.options, queue.sequence)
  if idle then call("SET", queue.sequence, queues.IDLE) end
  queues.set_control(queue, queues.NEVER, 0, 0, heartbeat)
  if ctx.index then ctx.index.drop(ctx, queue) end
end

-- A queue that is not used leaves the list. Its numbers stay for `seconds`, unless it is used again.
function M.retire(ctx, queue, seconds)
  M.forget(ctx, queue)
  call("UNLINK", queue.wake_key)
  call("EXPIRE", queue.sequence, seconds)
  days.expire(queue, seconds)
  event.changed(ctx, "queues")
end

return M
