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
local function revive(at, queue, jid, r, first)
  failure.remove(at, jid, r)
  history.tell(at, jid, r, history.PUT, queue.name)
  report.clear(at, jid, r)
  r.queue, r.remaining, r.losses = queue.name, r.retries, 0
  state.move(r, state.WAITING)
  job.make_ready(at, queue, jid, r, first, false)
  job.write(at, jid, r)
end

-- Moves up to `count` jobs; drops jids whose job is gone. Returns how many it moved.
function M.run(at, name, group, count)
  local jids, found, queue = failure.oldest(at, group, count), {}, keys.of_queue(at, name)
  for i = 1, #jids do
    local r = job.read(at, jids[i])
    if r and r.state == state.FAILED then found[#found + 1] = { jids[i], r } else failure.leave(at, group, jids[i]) end
  end
  if #found == 0 then return 0 end
  local first, idle = queues.enter(at, queue, #found)
  for i = 1, #found do revive(at, queue, found[i][1], found[i][2], first + i - 1) end
  if idle then queues.signal(queue) end
  event.changed(at, "queue:" .. name)
  return #found
end

return M
