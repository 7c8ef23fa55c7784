-- queue_bounds: the bounds of a queue: `max-waiting`, how many jobs it may
-- hold that do not run yet, and `max-losses`, how often a job of it is handed out again
-- after a lost lease, whatever its retries. Both lie in the queue's options.
local bounds = require("base.bounds")
local refuse = require("base.refuse")
local queue_flags = require("nouns.queue.queue_flags")
local state = require("nouns.job.state")
local M = {}

M.MOST = { ["max-waiting"] = bounds.MAXIMUM, ["max-losses"] = bounds.LOSSES } -- a record counts 255 losses
local NAMES = { "max-waiting", "max-losses" }
local WAITS = {
  [state.WAITING] = true, [state.SCHEDULED] = true, [state.DEPENDS] = true, [state.THROTTLED] = true,
  [state.STALLED] = true,
}

-- What is set, as (option, value) pairs.
function M.all(queue)
  local found, pairs_ = call("HMGET", queue.options, NAMES[1], NAMES[2]), {}
  for i = 1, #NAMES do
    if found[i] then pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = NAMES[i], found[i] end
  end
  return pairs_
end

-- "" for `value`: no bound any more.
function M.set(queue, option, value)
  if value == "" then
    call("HDEL", queue.options, option)
  else
    call("HSET", queue.options, option, value)
  end
  if option == "max-waiting" then queue_flags.set_most(queue, value ~= "") end
end

-- How many more jobs may wait.
function M.room(queue)
  local most = tonumber(call("HGET", queue.options, "max-waiting") or nil)
  if not most then return 1 / 0 end
  return most - call("ZCARD", queue.waiting) - call("ZCARD", queue.scheduled) - call("ZCARD", queue.depends)
    - call("ZCARD", queue.throttled)
end

-- Why a put into a queue with some limit is refused: it holds as many as it may. `target.room`
-- is counted down.
function M.refusal(target, jid, r)
  if r and r.queue == target.queue.name and WAITS[r.state] then return nil end
  target.room = (target.room or M.room(target.queue)) - 1
  if target.room >= 0 then return nil end
  return refuse.job("QUEUE_FULL", jid .. " has no room: queue " .. target.queue.name .. " is full (max-waiting)")
end

-- How often a job of it may be lost, nil: no bound.
function M.most_losses(queue) return tonumber(call("HGET", queue.options, "max-losses") or nil) end

-- Pays for a lost lease with a retry. Returns nil if the job may be handed out again, else
-- the message with which it fails.
function M.pay(queue, r)
  r.remaining, r.losses = r.remaining - 1, r.losses < 255 and r.losses + 1 or 255
  local most = M.most_losses(queue)
  local too_often = most and r.losses > most
  if r.remaining >= 0 and not too_often then return nil end
  r.remaining = -1
  if too_often then return ('Job lost its lease %d times in queue "%s"'):format(r.losses, queue.name) end
  return 'Job exhausted retries in queue "' .. queue.name .. '"'
end

return M
