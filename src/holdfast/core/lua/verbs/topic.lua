-- topic: delayed messages are put, rescheduled, released, deleted, queued again, and looked at.
local refuse = require("base.refuse")
local topics = require("nouns.topic.topic")
local wake = require("nouns.topic.topic_wake")
local M = {}

-- When a message is ready that was given a number of ms, or a moment.
local function moment(ctx, is_delay, when) return is_delay and ctx.now + when or when end

-- `args[first … last]` are (id, when, body). Returns 1 for each that was added, 0 where
-- there is one of that id.
function M.put(ctx, name, is_delay, args, first, last)
  local topic, added, earliest = topics.open(ctx, name), {}, nil
  for i = first, last, 3 do
    local ready = moment(ctx, is_delay, tonumber(args[i + 1]))
    local new = topics.add(ctx, topic, args[i], ready, args[i + 2])
    added[#added + 1] = new and 1 or 0
    if new and not (earliest and earliest <= ready) then earliest = ready end
  end
  if earliest then
    wake.for_message(ctx, topic, earliest)
    topics.changed(ctx, topic, "scheduled", args, first, 3, added)
  end
  return added
end

-- `args[first … last]` are (id, deadline) of reserved messages ("": of whatever reservation),
-- which are done and deleted (`how`), or ready again `in` a number of ms or `at` a moment. Returns
-- 1 for each, 0 for one that is not reserved, or not so.
function M.release(ctx, name, how, when, args, first, last)
  local topic, released, ready, count = topics.to_shrink(ctx, name), {}, moment(ctx, how == "in", when), 0
  for i = first, last, 2 do
    local id, ends = args[i], topics.reserved_until(topic, args[i], tonumber(args[i + 1]))
    if ends and how == "done" then topics.remove(topic, id, topic.reserved) end
    if ends and how ~= "done" then topics.release(topic, id, ready) end
    released[#released + 1], count = ends and 1 or 0, ends and count + 1 or count
  end
  if count == 0 then return released end
  topics.changed(ctx, topic, how == "done" and "completed", args, first, 2, released)
  if how == "done" then
    topics.forget_empty(ctx, topic)
  else
    wake.for_message(ctx, topic, ready)
  end
  return released
end

-- Returns 1 for each that is queued and ready then, 0 for one that is not queued.
function M.reschedule(ctx, name, is_delay, when, args, first, last)
  local topic, moved, count, ready = topics.open(ctx, name), {}, 0, moment(ctx, is_delay, when)
  for i = first, last do
    local there = topics.reschedule(topic, args[i], ready)
    moved[#moved + 1], count = there and 1 or 0, there and count + 1 or count
  end
  if count == 0 then return moved end
  wake.for_message(ctx, topic, ready)
  topics.changed(ctx, topic)
  return moved
end

-- Returns 1 for each that was there, queued or reserved.
function M.delete(ctx, name, args, first, last)
  local topic, removed, count = topics.to_shrink(ctx, name), {}, 0
  for i = first, last do
    local there = topics.erase(topic, args[i])
    removed[#removed + 1], count = there and 1 or 0, there and count + 1 or count
  end
  if count == 0 then return removed end
  topics.forget_empty(ctx, topic)
  topics.changed(ctx, topic, "cancelled", args, first, 1, removed)
  return removed
end

-- Returns how many came back, and the ms until the next reservation is over (-1: never).
function M.requeue(ctx, name, max, limit)
  local topic = topics.open(ctx, name)
  local moved = topics.bring_back(topic, max, limit)
  if moved > 0 then
    wake.for_message(ctx, topic, max)
    topics.changed(ctx, topic)
  end
  return { moved, topics.over_in(ctx, topic) }
end

-- A row per id: `queued` or `reserved`, until when, and the body; false where there is none.
-- What is too much for one call is refused; a single message never is.
function M.get(ctx, name, args, first, last)
  local topic, rows, size = topics.open(ctx, name), {}, 0
  for i = first, last do
    local place, when = topics.place(topic, args[i])
    local body = place and topics.body(topic, args[i])
    rows[#rows + 1] = body and { place, when, body } or false
    size = size + (body and #body or 0)
    if size > ctx.bounds.reply and #rows > 1 then
      refuse.call("TOO_MANY", "these messages are too large for one call: request fewer")
    end
  end
  return rows
end

-- A row per topic: its name, and what `topics.counts` returns.
function M.counts(ctx, args, first, last)
  local rows = {}
  for i = first, last do rows[#rows + 1] = { args[i], unpack_(topics.counts(ctx, topics.open(ctx, args[i]))) } end
  return rows
end

return M
