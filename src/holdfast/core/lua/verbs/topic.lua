-- topic: delayed messages are put, reserved, pulled, released, deleted, brought back.
local late = require("base.late")
local topics = require("nouns.topic")
local bell = require("nouns.topic_bell")
local M = {}

M.WILL_WAIT, M.WOKEN = 1, 2
local PIECE = 64 -- messages looked at at once

local min
late.bind(function() min = math.min end)

-- When a message is ready that was given so many ms, or this moment.
local function moment(at, is_delay, when) return is_delay and at.now + when or when end

-- `args[first … last]` are (id, when, body). Returns 1 for each that was added, 0 where
-- there is one of that id.
function M.put(at, name, is_delay, args, first, last)
  local topic, added, earliest = topics.open(at, name), {}, nil
  for i = first, last, 3 do
    local ready = moment(at, is_delay, tonumber(args[i + 1]))
    local new = topics.add(at, topic, args[i], ready, args[i + 2])
    added[#added + 1] = new and 1 or 0
    if new and not (earliest and earliest <= ready) then earliest = ready end
  end
  if earliest then
    bell.ring_for(at, topic, earliest)
    topics.changed(at, topic)
  end
  return added
end

-- Hands ready messages that have a body to `each(id, body)`; others are dropped. Ends with a
-- full reply, too. Returns how many.
local function take(at, topic, max, limit, each)
  local taken, size, odd = 0, 0, 0
  while taken < limit and odd < at.bounds.odd do
    local ids = topics.ready(topic, max, min(limit - taken, PIECE))
    if #ids == 0 then break end
    for i = 1, #ids do
      local body = topics.body(topic, ids[i])
      if body and taken > 0 and size + #body > at.bounds.reply then return taken end
      if body then
        each(ids[i], body)
        taken, size = taken + 1, size + #body
      else
        topics.erase(topic, ids[i])
        odd = odd + 1
      end
    end
  end
  if odd > 0 then topics.forget_empty(at, topic) end
  if taken + odd > 0 then topics.changed(at, topic) end
  return taken
end

-- Returns (id, deadline, body) of up to `limit` messages that are ready by `max`, reserved for
-- `length` ms. `mode` says how the caller will wait, as with pop.
function M.reserve(at, name, mode, limit, max, length)
  local topic, deadline, out = topics.to_shrink(at, name), max + length, { -1 }
  local taken = take(at, topic, max, limit, function(id, body)
    topics.reserve(topic, id, deadline)
    out[#out + 1], out[#out + 2], out[#out + 3] = id, deadline, body
  end)
  if mode > 0 and taken < limit then
    bell.raise_idle(at, topic)
  elseif mode == M.WOKEN then
    bell.pass_on(at, topic)
  end
  out[1] = topics.ready_in(at, topic)
  return out
end

-- The same for a repeat: those of `ids` that are still reserved until then.
function M.reserved_again(at, name, deadline, ids)
  local topic, out = topics.open(at, name), { -1 }
  for id in ids:gmatch("[^\n]+") do
    local body = topics.reserved_until(topic, id, deadline) and topics.body(topic, id)
    if body then out[#out + 1], out[#out + 2], out[#out + 3] = id, deadline, body end
  end
  out[1] = topics.ready_in(at, topic)
  return out
end

-- Returns (id, body) of up to `limit` messages that are ready by `max` and gone now.
function M.pull(at, name, limit, max)
  local topic, out = topics.to_shrink(at, name), {}
  local taken = take(at, topic, max, limit, function(id, body)
    topics.remove(topic, id, topic.queued)
    out[#out + 1], out[#out + 2] = id, body
  end)
  if taken > 0 then topics.forget_empty(at, topic) end
  return out
end

-- `args[first … last]` are (id, deadline) of reserved messages ("": of whatever reservation),
-- which are done and deleted (`how`), or ready again `in` so many ms or `at` a moment. Returns
-- 1 for each, 0 for one that is not reserved, or not so.
function M.release(at, name, how, when, args, first, last)
  local topic, released, ready, count = topics.to_shrink(at, name), {}, moment(at, how == "in", when), 0
  for i = first, last, 2 do
    local id, ends = args[i], topics.reserved_until(topic, args[i], tonumber(args[i + 1]))
    if ends and how == "done" then topics.remove(topic, id, topic.reserved) end
    if ends and how ~= "done" then topics.give_back(topic, id, ready) end
    released[#released + 1], count = ends and 1 or 0, ends and count + 1 or count
  end
  if count == 0 then return released end
  topics.changed(at, topic)
  if how == "done" then
    topics.forget_empty(at, topic)
  else
    bell.ring_for(at, topic, ready)
  end
  return released
end

-- Returns 1 for each that was there, queued or reserved.
function M.delete(at, name, args, first, last)
  local topic, removed, count = topics.to_shrink(at, name), {}, 0
  for i = first, last do
    local there = topics.erase(topic, args[i])
    removed[#removed + 1], count = there and 1 or 0, there and count + 1 or count
  end
  if count == 0 then return removed end
  topics.forget_empty(at, topic)
  topics.changed(at, topic)
  return removed
end

-- Returns how many came back, and the ms until the next reservation is over (-1: never).
function M.requeue(at, name, max, limit)
  local topic = topics.open(at, name)
  local moved = topics.bring_back(topic, max, limit)
  if moved > 0 then
    bell.ring_for(at, topic, max)
    topics.changed(at, topic)
  end
  return { moved, topics.over_in(at, topic) }
end

return M
