-- put_right: a call failed on its way, for a key of ours held what another program put there.
--
-- The store undoes nothing. Records are written last, so each job that the call had in
-- hand goes back to the place that its record names, unless it is there. What cannot be
-- put back is left: the next call that has it in hand and fails tries again.
local late = require("base.late")
local keys = require("base.keys")
local root = require("base.root")
local dependency = require("nouns.dependency")
local failure = require("nouns.failure")
local in_hand = require("nouns.in_hand")
local job = require("nouns.job")
local queues = require("nouns.queue")
local releasing = require("nouns.releasing")
local state = require("nouns.state")
local M = {}

local call
late.bind(function() call = redis.call end)

local function is_in(set, jid) return call("ZSCORE", set, jid) and true or false end

-- Its holder may settle it, or it is handed out again in time.
local function running(at, queue, jid)
  if is_in(queue.leases, jid) then return end
  local ends = at.now + root.heartbeat(at)
  call("ZADD", queue.leases, ends, jid)
  queues.lower_due(at, queue, ends)
end

local function is_ready(at, queue, jid, r) return is_in(queue.waiting, at.order.member(r, jid)) end

local function ready(at, queue, jid, r)
  if is_ready(at, queue, jid, r) then return end
  local first = queues.take_sequence(at, queue, 1)
  if r.state == state.STALLED then
    call("ZADD", queue.waiting, at.order.urgent(r, first + 1, jid))
  else
    call("ZADD", queue.waiting, at.order.place(r, first + 1, at.now, jid))
  end
  job.write(at, jid, r)
  queues.signal_if_idle(queue)
end

-- Its due time is lost.
local function scheduled(at, queue, jid)
  if not is_in(queue.scheduled, jid) then job.schedule(at, queue, jid, at.now) end
end

-- The last parent may have ended in this call.
local function depends(at, queue, jid, r)
  call("ZADD", queue.depends, "NX", at.now, jid)
  if #dependency.named(at, jid) > 0 then return end
  dependency.settle(at, jid, r)
  state.move(r, state.WAITING)
  ready(at, queue, jid, r)
  job.write(at, jid, r) -- also if it was among the ready ones already
  call("ZREM", queue.depends, jid)
end

local function throttled(at, queue, jid, r)
  local known, is_there = pcall(is_ready, at, queue, jid, r)
  if not known or not is_there then call("ZADD", queue.throttled, "NX", at.now, jid) end
end

local function failed(at, queue, jid, r)
  local noted = failure.read(at, jid, r)
  if noted then failure.enter(at, queue, jid, noted[1], noted[3]) end
end

local HOME = {
  [state.RUNNING] = running, [state.WAITING] = ready, [state.STALLED] = ready, [state.SCHEDULED] = scheduled,
  [state.DEPENDS] = depends, [state.THROTTLED] = throttled, [state.FAILED] = failed,
}

local function home(at, jid)
  local r = job.read(at, jid)
  local place = r and HOME[r.state]
  if place then place(at, keys.of_queue(at, r.queue), jid, r) end
end

-- A job that was popped keeps its old place, if it is still ready.
local function ready_again(at, member, score)
  local jid = at.order.jid(member)
  local r = job.read(at, jid)
  if not r or not state.is_ready(r) then return end
  local queue = keys.of_queue(at, r.queue)
  if not is_in(queue.throttled, jid) then call("ZADD", queue.waiting, "NX", score, member) end
end

-- A child that waits still goes back to its parent, a pending job to its throttle.
local function taken_again(at, set, jid, score)
  local r = job.read(at, jid)
  if not r or r.state ~= state.DEPENDS and r.state ~= state.THROTTLED then return end
  call("ZADD", set, "NX", score, jid)
  if r.state == state.DEPENDS then dependency.open_again(at, jid, releasing.parent_of(at, set)) end
end

-- One that cannot be put back keeps no other from it.
function M.run(at)
  local jids, by_set, popped = in_hand.all()
  for i = 1, popped and #popped or 0, 2 do pcall(ready_again, at, popped[i], popped[i + 1]) end
  for set, list in pairs(by_set) do
    for i = 1, #list, 2 do
      pcall(taken_again, at, set, list[i], list[i + 1])
      pcall(home, at, list[i])
    end
  end
  for i = 1, #jids do pcall(home, at, jids[i]) end
  in_hand.all()
end

return M
