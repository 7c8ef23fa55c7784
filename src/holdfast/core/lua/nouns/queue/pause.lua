-- pause: the pause of a queue, in which no job is popped: by whom, why, and until when.
--
-- Whether it is paused is a bit of the control record. The rest is for people, and only
-- a pop that finds the bit up reads when the pause ends by itself.
local event = require("nouns.event.event")
local queues = require("nouns.queue.queue")
local M = {}

local BY, WHY, SINCE, UNTIL = "paused-by", "paused-why", "paused-since", "paused-until"

-- When the pause of a paused queue is over.
function M.ends(queue) return tonumber(call("HGET", queue.options, UNTIL) or nil) or queues.NEVER end

-- `length` is in ms, 0 until someone ends it. True if the queue was not paused before.
function M.begin(ctx, queue, who, why, length)
  local begun = queues.set_paused(ctx, queue, true) or M.ends(queue) <= ctx.now
  call("HSET", queue.options, BY, who, WHY, why, SINCE, ctx.now)
  if length > 0 then
    call("HSET", queue.options, UNTIL, ctx.now + length)
    if ctx.index then ctx.index.lowered(ctx, queue, ctx.now + length) end -- sooner than it was, perhaps
  else
    call("HDEL", queue.options, UNTIL)
  end
  event.changed(ctx, "queue:" .. queue.name)
  return begun
end

-- True if the queue was paused.
function M.stop(ctx, queue)
  local ends, lowered = M.ends(queue), queues.set_paused(ctx, queue, false)
  call("HDEL", queue.options, BY, WHY, SINCE, UNTIL)
  if lowered then event.changed(ctx, "queue:" .. queue.name) end
  return lowered and ends > ctx.now
end

-- The pause ended by itself. Returns the flags that are left of `flags`.
function M.over(ctx, queue, flags)
  M.stop(ctx, queue)
  return flags - queues.PAUSED
end

-- Who, why, since and until when (ms, 0 for no end) of a queue that is paused as of now;
-- nothing of any other.
function M.record(ctx, queue, flags)
  if not queues.is_paused(flags) then return nil end
  local found = call("HMGET", queue.options, BY, WHY, SINCE, UNTIL)
  local ends = tonumber(found[4] or nil) or 0
  if ends > 0 and ends <= ctx.now then return nil end
  return { found[1] or "", found[2] or "", tonumber(found[3] or nil) or 0, ends }
end

return M
