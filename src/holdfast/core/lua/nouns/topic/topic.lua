-- topic: messages under ids that their callers chose.
--
-- A message is queued until a moment, or reserved until another, and has a body all the
-- time. One that moves is in its new set before it leaves the old one, so a call that
-- fails on its way loses none. A topic is listed while it holds messages.
local batch = require("base.batch")
local event = require("nouns.event.event")
local M = {}

function M.open(ctx, name)
  local keys = ctx.keys
  return {
    name = name, messages = keys.messages .. name, queued = keys.queued .. name, reserved = keys.reserved .. name,
    wake_key = keys.topic_wake_key .. name,
  }
end

-- The same for a call that may take messages away. It reads both sets, so that one which
-- another program put something else in place of is met before anything is written.
function M.to_shrink(ctx, name)
  local topic = M.open(ctx, name)
  topic.size = call("ZCARD", topic.queued) + call("ZCARD", topic.reserved)
  return topic
end

-- What is behind `topic` names the messages that came or went, as `event.messages` has it.
function M.changed(ctx, topic, ...)
  if not ctx.watched then return end
  event.changed(ctx, "topic:" .. topic.name)
  if ... then event.messages(ctx, topic.name, ...) end
end

local function first_of(set) return tonumber(call("ZRANGE", set, 0, 0, "WITHSCORES")[2]) end

-- How many ms until then, -1 for never.
local function away(ctx, when)
  if not when then return -1 end
  return when > ctx.now and when - ctx.now or 0
end

-- When the earliest of the queued is ready, nil if there are none.
function M.first_ready(topic) return first_of(topic.queued) end

-- How many ms until a message is ready, or a reservation is over.
function M.ready_in(ctx, topic) return away(ctx, first_of(topic.queued)) end
function M.over_in(ctx, topic) return away(ctx, first_of(topic.reserved)) end

-- Where a message is (`queued`, `reserved` or nil), and until when.
function M.place(topic, id)
  local score = call("ZSCORE", topic.queued, id)
  if score then return "queued", tonumber(score) end
  score = call("ZSCORE", topic.reserved, id)
  if score then return "reserved", tonumber(score) end
end

-- Adds a message unless there is one of that id. Returns whether it did.
function M.add(ctx, topic, id, ready, body)
  if M.place(topic, id) then return false end
  local known = call("ZSCORE", ctx.keys.topics, topic.name)
  call("HSET", topic.messages, id, body)
  call("ZADD", topic.queued, ready, id)
  if not known then call("ZADD", ctx.keys.topics, ctx.now, topic.name) end
  return true
end

-- Removes a message that is in one of the sets.
function M.remove(topic, id, set)
  call("HDEL", topic.messages, id)
  topic.size = topic.size - call("ZREM", set, id)
end

-- Removes whatever there is of a message. Returns whether there was something.
function M.erase(topic, id)
  local queued, reserved = call("ZSCORE", topic.queued, id), call("ZSCORE", topic.reserved, id)
  local found = call("HDEL", topic.messages, id) == 1
  if queued then topic.size = topic.size - call("ZREM", topic.queued, id) end
  if reserved then topic.size = topic.size - call("ZREM", topic.reserved, id) end
  return found or queued or reserved
end

-- A topic without messages is forgotten.
function M.forget_empty(ctx, topic)
  if topic.size > 0 then return end
  call("ZREM", ctx.keys.topics, topic.name)
  call("UNLINK", topic.wake_key, topic.messages)
end

function M.body(topic, id) return call("HGET", topic.messages, id) end

-- The ids of up to `count` messages that are ready by `max`, the earliest first.
function M.ready(topic, max, count)
  return call("ZRANGE", topic.queued, "-inf", max, "BYSCORE", "LIMIT", 0, count)
end

function M.reserve(topic, id, deadline)
  call("ZADD", topic.reserved, deadline, id)
  call("ZREM", topic.queued, id)
end

-- Until when a message is reserved, nil if it is not; also if `deadline` (nil: any) is that
-- of another reservation.
function M.reserved_until(topic, id, deadline)
  local ends = tonumber(call("ZSCORE", topic.reserved, id) or nil)
  if ends and (not deadline or deadline == ends) then return ends end
end

-- Changes when a queued message is ready. Returns whether there is one.
function M.reschedule(topic, id, ready)
  if not call("ZSCORE", topic.queued, id) then return false end
  call("ZADD", topic.queued, ready, id)
  return true
end

function M.release(topic, id, ready)
  call("ZADD", topic.queued, ready, id)
  call("ZREM", topic.reserved, id)
end

-- Queues up to `count` messages again whose reservation is over by `max`. Returns how many.
function M.bring_back(topic, max, count)
  local ids = call("ZRANGE", topic.reserved, "-inf", max, "BYSCORE", "LIMIT", 0, count)
  local pairs_ = {}
  for i = 1, #ids do pairs_[2 * i - 1], pairs_[2 * i] = max, ids[i] end
  batch.send("ZADD", topic.queued, pairs_)
  batch.send("ZREM", topic.reserved, ids)
  return #ids
end

-- How many are queued, of these ready now, and reserved; when the first of the queued is
-- ready, and the first reservation over (-1: never).
function M.counts(ctx, topic)
  return {
    call("ZCARD", topic.queued), call("ZCOUNT", topic.queued, "-inf", ctx.now), call("ZCARD", topic.reserved),
    first_of(topic.queued) or -1, first_of(topic.reserved) or -1,
  }
end

return M
