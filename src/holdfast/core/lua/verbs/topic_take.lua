-- topic_take: reserves delayed messages that are ready, or takes and deletes them.
local topics = require("nouns.topic.topic")
local wake = require("nouns.topic.topic_wake")
local M = {}

M.WILL_WAIT, M.WOKEN = 1, 2
local PIECE = 64 -- messages read at once

-- Calls `each(id, body)` for ready messages; those without a body are deleted. Stops at `limit` messages,
-- or when the reply is full. Returns how many, and whether there may be more.
local function take(ctx, topic, max, limit, each)
  local taken, size, odd, more = 0, 0, 0, true
  while more and taken < limit and odd < ctx.bounds.skipped and size < ctx.bounds.reply do
    local ids = topics.ready(topic, max, min(limit - taken, PIECE))
    more = #ids > 0
    for i = 1, #ids do
      local body = topics.body(topic, ids[i])
      if body and taken > 0 and size + #body > ctx.bounds.reply then
        size = ctx.bounds.reply
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
  if odd > 0 then topics.forget_empty(ctx, topic) end
  if taken + odd > 0 then topics.changed(ctx, topic) end
  return taken, more
end

-- Returns (id, deadline, body) of up to `limit` messages that are ready by `max`, reserved for
-- `length` ms. `mode` is how the caller will wait, as with pop.
function M.reserve(ctx, name, mode, limit, max, length)
  local topic, deadline, out = topics.to_shrink(ctx, name), max + length, { -1 }
  local _, more = take(ctx, topic, max, limit, function(id, body)
    topics.reserve(topic, id, deadline)
    out[#out + 1], out[#out + 2], out[#out + 3] = id, deadline, body
  end)
  if mode > 0 and not more then
    wake.raise_idle(ctx, topic)
  elseif mode == M.WOKEN then
    wake.pass_on(ctx, topic)
  end
  out[1] = topics.ready_in(ctx, topic)
  return out
end

-- The same for a repeated call: those of `ids` that are still reserved until `deadline`.
function M.reserved_again(ctx, name, deadline, ids)
  local topic, out = topics.open(ctx, name), { -1 }
  for id in gmatch(ids, "[^\n]+") do
    local body = topics.reserved_until(topic, id, deadline) and topics.body(topic, id)
    if body then out[#out + 1], out[#out + 2], out[#out + 3] = id, deadline, body end
  end
  out[1] = topics.ready_in(ctx, topic)
  return out
end

-- Returns (id, body) of up to `limit` messages that are ready by `max`, and deletes them.
function M.pull(ctx, name, limit, max)
  local topic, out = topics.to_shrink(ctx, name), {}
  local taken = take(ctx, topic, max, limit, function(id, body)
    topics.remove(topic, id, topic.queued)
    out[#out + 1], out[#out + 2] = id, body
  end)
  if taken > 0 then
    topics.forget_empty(ctx, topic)
    topics.changed(ctx, topic, "completed", out, 1, 2)
  end
  return out
end

return M
