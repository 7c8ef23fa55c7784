-- topic_bell: waking who waits for messages of a topic.
--
-- A list with at most one token, as queues have; a field of one hash says that somebody may
-- be waiting. Whoever looks in vain is told when the next message is ready, so the bell is
-- for what becomes ready sooner than that.
local late = require("base.late")
local topics = require("nouns.topic")
local M = {}

local SOON = 5000 -- ms: what is ready later is learnt by an idle subscriber's next look

local call
late.bind(function() call = redis.call end)

-- Rings, if somebody may be waiting. A token that lies there means that nobody is.
local function ring(at, topic)
  if not call("HGET", at.keys.topic_idle, topic.name) then return end
  if call("EXISTS", topic.bell) == 1 then
    call("HDEL", at.keys.topic_idle, topic.name)
  else
    call("RPUSH", topic.bell, "")
  end
end

-- Messages came that are ready then.
function M.ring_for(at, topic, ready)
  if ready <= at.now or ready <= topics.first_ready(topic) then ring(at, topic) end
end

-- Somebody is going to wait.
function M.raise_idle(at, topic)
  if not call("HGET", at.keys.topic_idle, topic.name) then call("HSET", at.keys.topic_idle, topic.name, "1") end
end

-- Somebody who was woken will be busy: whoever else waits has to look.
function M.pass_on(at, topic)
  local ready = topics.first_ready(topic)
  M.raise_idle(at, topic)
  if ready and ready < at.now + SOON then ring(at, topic) end
end

return M
