-- reprioritise: a job gets another priority; one that waits goes ahead of its new class.
local keys = require("base.keys")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local function set(ctx, priority, jid, r)
  local queue = keys.of_queue(ctx, r.queue)
  local old = ctx.order.member(r, jid)
  local score = state.is_ready(r) and call("ZSCORE", queue.waiting, old)
  if score then
    call("ZREM", queue.waiting, old)
    call("ZADD", queue.waiting, ctx.order.ahead(r, tonumber(score), priority, jid))
  end
  r.priority = priority
  job.write(ctx, jid, r)
end

-- Returns per jid 1, or 0 if it is unknown.
function M.run(ctx, priority, args, first, last)
  local reply = {}
  for i = first, last do
    local r = job.read(ctx, args[i])
    if r then set(ctx, priority, args[i], r) end
    reply[#reply + 1] = r and 1 or 0
  end
  return reply
end

return M
