-- topic_take: delayed messages that are ready are reserved, or pulled for good.
local late = require("base.late")
local topics = require("nouns.topic")
local bell = require("nouns.topic_bell")
local M = {}

M.WILL_WAIT, M.WOKEN = 1, 2
local PIECE = 64 -- messages looked at at once

local gmatch, min
late.bind(function() gmatch, min = string.gmatch, math.min end)

-- Hands ready messages that have a body to `each(id, body)`; others are dropped. Ends with a
-- full reply, too. Returns how many, and whether there may be more.
local function take(at, topic, max, limit, each)
  local taken, size, odd, more = 0, 0, 0, true
  while more and taken < limit and odd < at.bounds.odd and size < at.bounds.reply do
    local ids = topics.ready(topic, max, min(limit - taken, PIECE))
    more = #ids > 0
    for i = 1, #ids do
      local body = topics.body(topic, ids[i])
      if body and taken > 0 and size + #body > at.bounds.reply then
        size = at.bounds.reply
        break
      end
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
  return taken, more
end

-- Returns (id, deadline, body) of up to `limit` messages that are ready by `max`, reserved for
-- `length` ms. `mode` says how the caller will wait, as with pop.
function M.reserve(at, name, mode, limit, max, length)
  local topic, deadline, out = topics.to_shrink(at, name), max + length, { -1 }
  local _, more = take(at, topic, max, limit, function(id, body)
    topics.reserve(topic, id, deadline)
    out[#out + 1], out[#out + 2], out[#out + 3] = id, deadline, body
  end)
  if mode > 0 and not more then
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
  for id in gmatch(ids, "[^\n]+") do
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

return M
