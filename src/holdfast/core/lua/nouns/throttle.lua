-- throttle: how many jobs may run at once, of a queue or of all that name it. Where any
-- throttle may bind any job in any way, `at` holds `holders` in place of this.
--
-- Flag THROTTLED: the job was popped under a limit or holds slots, so its end has to be
-- noticed. Jobs without named throttles in unlimited queues pay one comparison.
local late = require("base.late")
local record = require("base.record")
local aside = require("nouns.aside")
local bounded = require("nouns.bounded")
local job = require("nouns.job")
local named = require("nouns.named")
local queues = require("nouns.queue")
local slots = require("nouns.slots")
local state = require("nouns.state")
local tending = require("nouns.tending")
local M = {}

local NAMED, THROTTLED = record.FLAG.NAMED, record.FLAG.THROTTLED
local has, with = record.has, record.with

local call
late.bind(function() call = redis.call end)

-- What is seldom asked stands elsewhere, and is not made before it is asked.
function M.assign(at, queue, jid, r, ids) return named.assign(at, queue, jid, r, ids) end

-- Sets a job aside that is put, even if it was aside before: a new life has a line of its own.
function M.park(at, queue, jid, r, id)
  if r.state == state.THROTTLED then state.move(r, state.WAITING) end
  aside.park(at, queue, jid, r, id)
end

-- The throttle that a job which is put finds full, or nil: its own ones, then the
-- queue's. `limited`: the queue's bit says that there is a limit of some kind.
function M.is_full(at, queue, jid, r, limited)
  if has(r.flags, NAMED) then
    local full = named.first_full(at, named.others(at, queue, jid, r), slots.free)
    if full then return full end
  end
  return limited and slots.free(at, queue.own) < 1 and queue.own or nil
end

-- How many slots of a throttle are free.
function M.free(at, id) return slots.free(at, id) end

-- Jobs that wait for the same slots as one that no longer does.
local function offer_all(at, ids, but)
  for i = 1, #ids do
    if ids[i] ~= but then slots.offer(at, ids[i]) end
  end
end

-- A job set aside is put elsewhere or deleted. If it had been let go, others may.
function M.withdraw(at, queue, jid, r)
  local ids = named.ids(at, queue, jid, r)
  aside.withdraw(at, queue, jid, ids)
  offer_all(at, ids)
end

-- A job handed out in this pop holds the slot of its queue, by its lease.
function M.keep(r, give)
  if give.limited then r.flags = with(r.flags, THROTTLED) end
end

-- All slots of a job that is popped, or none: then it is set aside, and the answer is
-- true. The queue has one: its pop asks for no more jobs than it has room for.
function M.take(at, queue, jid, r, give)
  M.keep(r, give)
  if not has(r.flags, NAMED) then return false end
  local ids = named.others(at, queue, jid, r)
  local full = named.first_full(at, ids, slots.free)
  if not full then
    for i = 1, #ids do slots.hold(at, ids[i], jid) end
    r.flags = with(r.flags, THROTTLED)
    return false
  end
  give.aside = give.aside + 1
  local was_let_go = r.state == state.THROTTLED
  r.flags = record.without(r.flags, THROTTLED)
  aside.park(at, queue, jid, r, full)
  job.write(at, jid, r)
  if was_let_go then offer_all(at, ids, full) end
  return true
end

-- For a pop: how many slots the queue has free, by its limit and flags; nil if it has
-- no limit.
function M.room(at, queue, give, limit, flags)
  if flags % 4 < queues.HAS_LIMIT then return nil end
  give.limited = true
  return limit - slots.used_by_queue(at, queue, flags)
end

-- Pops under a limit. `ready` grants up to so many, `room` are free. If nothing else
-- is ready, those that are pending go.
function M.grant(at, queue, give, want, room, ready)
  if room < want then want = room end
  local got = ready(at, queue, give, want)
  if got >= want or give.cut then return got end
  if aside.promote(at, queue.own, math.min(want - got, at.bounds.released)) == 0 then return got end
  return got + ready(at, queue, give, want - got)
end

-- Gives back one slot of a throttle, or forgets that the job waits for it. Says whether
-- it held one. Write nothing of an older record afterwards.
function M.release_one(at, id, jid)
  local queue, freed = slots.queue_of(at, id), slots.let_go(at, id, jid)
  if queue and not freed and slots.free_by_hand(at, queue, jid) then
    freed = true
    tending.mark(at, jid)
  end
  if not freed then call("ZREM", at.keys.pending .. id, jid) end
  slots.offer(at, id)
  if queue then queues.ring(at, queue) end
  return freed
end

-- The lease ended, or the job is deleted: its slots go to others, and whoever found the
-- queue full is woken.
function M.release(at, queue, jid, r)
  if not has(r.flags, THROTTLED) and not has(r.flags, NAMED) then return end
  r.flags = record.without(r.flags, THROTTLED)
  for _, id in ipairs(named.others(at, queue, jid, r)) do
    slots.let_go(at, id, jid)
    slots.offer(at, id)
  end
  local _, flags = queues.control(queue)
  if bounded.is_odd(flags) then slots.forget_freed(at, queue, jid) end
  if not bounded.is_limited(flags) then return end
  slots.offer(at, queue.own)
  queues.ring(at, queue)
end

function M.set(at, id, maximum, span) return tending.set(at, id, tonumber(maximum), span) end
function M.delete(at, id) return tending.delete(at, id) end
function M.state(at, id) return tending.state(at, id) end
function M.definition(at, id) return tending.definition(at, id) end
function M.go_on(at) return tending.go_on(at) end

-- An empty queue is forgotten, and its limit with it.
function M.forget(at, queue) return tending.forget(at, queue) end

-- The sets of who holds a slot and of who waits for one.
function M.sets(at, id)
  local queue = slots.queue_of(at, id)
  return queue and queue.leases or at.keys.holders .. id, at.keys.pending .. id
end

return M
