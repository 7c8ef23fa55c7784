-- job: one record, its body, and the place in a queue that its state names.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local earlier = require("nouns.earlier")
local event = require("nouns.event")
local in_hand = require("nouns.in_hand")
local queues = require("nouns.queue")
local state = require("nouns.state")
local M = {}

local FLAG = record.FLAG
local SPILL = record.SPILL

local call, unpack_
late.bind(function() call, unpack_ = redis.call, unpack end)

function M.read(at, jid)
  local bytes = call("GET", at.keys.job .. jid)
  if not bytes then return nil end
  in_hand.note(jid)
  return at.record.read(bytes)
end

function M.write(at, jid, r)
  call("SET", at.keys.job .. jid, at.record.write(r))
  if at.watched then event.changed_job(at, jid, r.queue) end
end

function M.body(at, jid, r)
  if record.has(r.flags, FLAG.SPILLED) then return call("GET", at.keys.body .. jid) or "" end
  return r.body
end

-- Replaces the data; "" leaves it. Write the record afterwards.
function M.set_body(at, jid, r, body)
  if body == "" then return end
  if at.flags >= root.KEEPING and r.attempts > 0 and earlier.are_kept(at) then
    local was = M.body(at, jid, r)
    if was ~= body then earlier.keep(at, jid, r, was) end
  end
  if #body > SPILL then
    call("SET", at.keys.body .. jid, body)
    r.flags, r.body = record.with(r.flags, FLAG.SPILLED), ""
    return
  end
  if record.has(r.flags, FLAG.SPILLED) then call("UNLINK", at.keys.body .. jid) end
  r.flags, r.body = record.without(r.flags, FLAG.SPILLED), body
end

local FROM = {
  [state.WAITING] = "waiting", [state.STALLED] = "waiting", [state.SCHEDULED] = "scheduled",
  [state.DEPENDS] = "depends",
}

-- Takes the job out of the set that its state names (others:
-- `lease.evict`).
function M.withdraw(at, jid, r)
  local queue = keys.of_queue(at, r.queue)
  local place = FROM[r.state]
  if place == "waiting" then
    call("ZREM", queue.waiting, at.order.member(r, jid))
  elseif place then
    call("ZREM", queue[place], jid)
  elseif r.state == state.THROTTLED then
    at.throttles.withdraw(at, queue, jid, r)
    call("ZREM", queue.waiting, at.order.member(r, jid))
    state.move(r, state.WAITING) -- so that it is told if it is set aside again
  end
end

-- Makes the job ready at the end of its class, and rings if somebody may wait.
-- Write the record afterwards. `first` and `idle`: of a sequence number that is taken.
function M.make_ready(at, queue, jid, r, first, idle)
  if not first then first, idle = queues.take_sequence(at, queue, 1) end
  call("ZADD", queue.waiting, at.order.place(r, first + 1, at.now, jid))
  if idle then queues.signal(queue) end
end

-- The same for many jobs of one queue, in that order. Writes their records.
function M.make_many_ready(at, queue, jids, records)
  local count = #jids
  if count == 0 then return end
  local first, idle = queues.take_sequence(at, queue, count)
  local entries, writes = {}, {}
  for i = 1, count do
    local jid, r = jids[i], records[i]
    state.move(r, state.WAITING)
    entries[2 * i - 1], entries[2 * i] = at.order.place(r, first + i, at.now, jid)
    writes[2 * i - 1], writes[2 * i] = at.keys.job .. jid, at.record.write(r)
  end
  call("ZADD", queue.waiting, unpack_(entries))
  call("MSET", unpack_(writes))
  if idle then queues.signal(queue) end
  if at.watched then
    for i = 1, count do event.changed_job(at, jids[i], queue.name) end
  end
end

-- Sets the job aside until `due`.
function M.schedule(at, queue, jid, due)
  call("ZADD", queue.scheduled, due, jid)
  queues.due_at(at, queue, due)
end

-- Places a job anew: after `delay` ms, or now.
function M.place(at, queue, jid, r, delay, first, idle)
  if delay > 0 then
    state.move(r, state.SCHEDULED)
    r.ended = 0
    M.schedule(at, queue, jid, at.now + delay)
  else
    state.move(r, state.WAITING)
    M.make_ready(at, queue, jid, r, first, idle)
  end
end

-- Deletes the job and all keys of its own.
function M.delete(at, jid, r)
  local k = at.keys
  if at.watched then event.changed_job(at, jid, r.queue) end
  if record.is_plain(r.flags) then return call("UNLINK", k.job .. jid) end
  return call("UNLINK", k.job .. jid, k.body .. jid, k.extra .. jid, k.dependents .. jid)
end

-- The job has an end: whoever waits for it hears of it.
function M.announce_end(at, jid, r)
  if record.has(r.flags, FLAG.AWAITED) then
    r.flags = r.flags - FLAG.AWAITED
    at.events.ended(at, jid)
  end
end

return M
