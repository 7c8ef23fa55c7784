-- unfail: failed jobs of a group go back to work, those first that failed first.
local keys = require("base.keys")
local failure = require("nouns.failure")
local event = require("nouns.event")
local history = require("nouns.history")
local job = require("nouns.job")
local queues = require("nouns.queue")
local report = require("nouns.report")
local state = require("nouns.state")
local M = {}

-- The job gets a new life in this queue, at the sequence number `first` + 1: its retries
-- are renewed, its priority and what was noted of the failure are kept.
function M.revive(ctx, queue, jid, r, first)
  failure.remove(ctx, jid, r)
  history.add(ctx, jid, r, history.PUT, queue.name)
  report.clear(ctx, jid, r)
  r.queue, r.remaining, r.losses = queue.name, r.retries, 0
  state.move(r, state.WAITING)
  job.make_ready(ctx, queue, jid, r, first, false)
  job.write(ctx, jid, r)
end

-- Moves up to `count` jobs; drops jids whose job is gone. Returns how many it moved.
function M.run(ctx, name, group, count)
  local jids, found, queue = failure.oldest(ctx, group, count), {}, keys.of_queue(ctx, name)
  for i = 1, #jids do
    local r = job.read(ctx, jids[i])
    if r and r.state == state.FAILED then found[#found + 1] = { jids[i], r } else failure.leave(ctx, group, jids[i]) end
  end
  if #found == 0 then return 0 end
  local first, idle = queues.enter(ctx, queue, #found)
  for i = 1, #found do M.revive(ctx, queue, found[i][1], found[i][2], first + i - 1) end
  if idle then queues.signal(queue) end
  event.changed(ctx, "queue:" .. name)
  return #found
end

return M
