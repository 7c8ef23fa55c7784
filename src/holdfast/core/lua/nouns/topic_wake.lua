-- topic_wake: waking who waits for messages of a topic.
--
-- A list with at most one token, as queues have; a field of one hash says that somebody may
-- be waiting. Whoever looks in vain is told when the next message is ready, so the bell is
-- for what becomes ready sooner than that.
local topics = require("nouns.topic")
local M = {}

local SOON = 5000 -- ms: what is ready later is learnt by an idle subscriber's next look

-- Rings, if somebody may be waiting. A token that lies there means that nobody is.
local function wake_one(ctx, topic)
  if not call("HGET", ctx.keys.topic_idle, topic.name) then return end
  if call("EXISTS", topic.wake_key) == 1 then
    call("HDEL", ctx.keys.topic_idle, topic.name)
  else
    call("RPUSH", topic.wake_key, "")
  end
end

-- Messages came that are ready then.
function M.for_message(ctx, topic, ready)
  if ready <= ctx.now or ready <= topics.first_ready(topic) then wake_one(ctx, topic) end
end

-- Somebody is going to wait.
function M.raise_idle(ctx, topic)
  if not call("HGET", ctx.keys.topic_idle, topic.name) then call("HSET", ctx.keys.topic_idle, topic.name, "1") end
end

-- Somebody who was woken will be busy: whoever else waits has to look.
function M.pass_on(ctx, topic)
  local ready = topics.first_ready(topic)
  M.raise_idle(ctx, topic)
  if ready and ready < ctx.now + SOON then wake_one(ctx, topic) end
end

return M
