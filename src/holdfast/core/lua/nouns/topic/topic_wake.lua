-- topic_wake: waking subscribers that wait for messages of a topic.
--
-- A list with at most one token, as queues have; a field of one hash is set while a
-- subscriber may be waiting. One that finds nothing learns when the next message is ready, so it is
-- woken for what becomes ready sooner than that.
local topics = require("nouns.topic.topic")
local M = {}

local DUE_SOON_MS = 5000 -- ms: what is ready later is found by an idle subscriber's next look

-- Wakes a subscriber that may be waiting. A token that lies there means that none is.
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

-- A subscriber that was woken will be busy: another one that waits has to look.
function M.pass_on(ctx, topic)
  local ready = topics.first_ready(topic)
  M.raise_idle(ctx, topic)
  if ready and ready < ctx.now + DUE_SOON_MS then wake_one(ctx, topic) end
end

return M
