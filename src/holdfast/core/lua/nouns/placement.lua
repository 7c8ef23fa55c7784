-- placement: where a job goes that comes into a queue.
local dependency = require("nouns.dependency")
local job = require("nouns.job")
local M = {}

-- A job that comes by a put or a move: behind its open parents, until its due time, aside
-- if a throttle is full, or among the ready ones. `to` says queue, delay (ms), limited
-- (the queue's bit), and first and idle of a sequence number that is taken. Writes the
-- record.
function M.settle(at, to, jid, r)
  local queue, delay = to.queue, to.delay
  if dependency.is_open(r) then
    dependency.park(at, queue, jid, r, delay)
  else
    local full = delay <= 0 and at.throttles.is_full(at, queue, jid, r, to.limited)
    if full then
      at.throttles.park(at, queue, jid, r, full)
    else
      job.place(at, queue, jid, r, delay, to.first, to.idle)
    end
  end
  job.write(at, jid, r)
end

-- A job that goes on after an attempt; its throttles are looked at when it is popped.
-- Writes the record.
function M.go_on(at, queue, jid, r, delay)
  if dependency.is_open(r) then
    dependency.park(at, queue, jid, r, delay)
  else
    job.place(at, queue, jid, r, delay)
  end
  job.write(at, jid, r)
end

return M
