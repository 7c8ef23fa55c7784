-- topic_look: what topics hold, for those who ask. Writes nothing.
local refuse = require("base.refuse")
local topics = require("nouns.topic")
local M = {}

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
      refuse.call("TOO_MANY", "these messages are too long for one call: ask for fewer")
    end
  end
  return rows
end

-- A row per topic: its name, and what `topics.counts` says.
function M.counts(ctx, args, first, last)
  local rows = {}
  for i = first, last do rows[#rows + 1] = { args[i], unpack_(topics.counts(ctx, topics.open(ctx, args[i]))) } end
  return rows
end

return M
