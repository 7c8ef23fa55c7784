-- placement: where a job goes that comes into a queue.
local dependency = require("nouns.dependency")
local job = require("nouns.job")
local queues = require("nouns.queue")
local state = require("nouns.state")
local tally = require("nouns.tally")
local M = {}

-- A job that comes by a put or a move: behind its open parents, until its due time, aside
-- if a throttle is full, or among the ready ones. `to` says queue, delay (ms), limited
-- (the queue's bit), and first and idle of a sequence number that is taken. Writes the
-- record.
function M.settle(at, to, jid, r)
  local queue, delay = to.queue, to.delay
  local full = delay <= 0 and not dependency.is_open(r) and at.throttles.is_full(at, queue, jid, r, to.limited)
  if dependency.is_open(r) then
    dependency.park(at, queue, jid, r, delay)
  elseif full then
    if to.first then queues.give_back(queue, 1) end
    at.throttles.park(at, queue, jid, r, full)
  elseif delay > 0 then
    job.place(at, queue, jid, r, delay)
  else
    local first, idle = to.first, to.idle
    if not first then first, idle = queues.enter(at, queue, 1) end
    job.place(at, queue, jid, r, 0, first, idle)
  end
  if r.state ~= state.WAITING then tally.count(at, queue, "later", 1) end
  job.write(at, jid, r)
end

-- A job that goes on in this queue after an attempt elsewhere; its throttles are looked
-- at when it is popped. Writes the record.
function M.go_on(at, queue, jid, r, delay)
  if dependency.is_open(r) then
    dependency.park(at, queue, jid, r, delay)
  else
    job.place(at, queue, jid, r, delay)
  end
  tally.count(at, queue, "later", 1)
  job.write(at, jid, r)
end

return M
