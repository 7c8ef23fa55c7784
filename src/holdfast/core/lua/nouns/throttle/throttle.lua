-- throttle: how many jobs may run at once, of a queue or of all that name it. What each has to
-- do with its throttles on the way; the rest is in `throttle_definition`, `throttle_slots` and
-- `throttle_waiting`, which are not made before a throttle is used. Where any throttle may bind
-- any job in any way, `ctx` holds `throttle_reqless` in place of this.
--
-- Flag THROTTLED: the job was popped under a limit or holds slots, so its end has to be
-- noticed. Jobs without named throttles in unlimited queues pay one comparison.
local record = require("base.record")
local job = require("nouns.job.job")
local definition = require("nouns.throttle.throttle_definition")
local queues = require("nouns.queue.queue")
local slots = require("nouns.throttle.throttle_slots")
local state = require("nouns.job.state")
local waiting = require("nouns.throttle.throttle_waiting")
local M = {}

local NAMED, THROTTLED = record.FLAG.NAMED, record.FLAG.THROTTLED
local has, with = record.has, record.with

function M.assign(ctx, queue, jid, r, ids) return definition.assign(ctx, queue, jid, r, ids) end

-- Holds back a job that is put, even if it was throttled before: a new life has a line of its own.
function M.hold_back(ctx, queue, jid, r, id)
  if r.state == state.THROTTLED then state.move(r, state.WAITING) end
  waiting.hold_back(ctx, queue, jid, r, id)
end

-- The throttle that a job which is put finds full, or nil: its own ones, then the
-- queue's. `limited`: the queue's bit: there is a limit of some kind.
function M.is_full(ctx, queue, jid, r, limited)
  if has(r.flags, NAMED) then
    local full = definition.first_full(ctx, definition.others(ctx, queue, jid, r), slots.free)
    if full then return full end
  end
  return limited and slots.free(ctx, queue.own) < 1 and queue.own or nil
end

-- How many slots of a throttle are free.
function M.free(ctx, id) return slots.free(ctx, id) end

-- Jobs that wait for the same slots as one that no longer does.
local function offer_all(ctx, ids, but)
  for i = 1, #ids do
    if ids[i] ~= but then waiting.offer(ctx, ids[i]) end
  end
end

-- A throttled job is put elsewhere or deleted. If it had been let go, others may.
function M.remove(ctx, queue, jid, r)
  local ids = definition.ids(ctx, queue, jid, r)
  waiting.remove(ctx, queue, jid, ids)
  offer_all(ctx, ids)
end

-- A job handed out in this pop holds the slot of its queue, by its lease.
function M.keep(r, grant)
  if grant.limited then r.flags = with(r.flags, THROTTLED) end
end

-- All slots of a job that is popped, or none: then it is held back. Returns whether
-- it is. The queue has one: its pop asks for no more jobs than it has room for.
function M.take(ctx, queue, jid, r, grant)
  M.keep(r, grant)
  if not has(r.flags, NAMED) then return false end
  local ids = definition.others(ctx, queue, jid, r)
  local full = definition.first_full(ctx, ids, slots.free)
  if not full then
    for i = 1, #ids do slots.hold(ctx, ids[i], jid) end
    r.flags = with(r.flags, THROTTLED)
    return false
  end
  grant.throttled = grant.throttled + 1
  local was_throttled = r.state == state.THROTTLED
  r.flags = record.without(r.flags, THROTTLED)
  waiting.hold_back(ctx, queue, jid, r, full)
  job.write(ctx, jid, r)
  if was_throttled then offer_all(ctx, ids, full) end
  return true
end

-- For a pop: how many slots the queue has free, by its limit and flags; nil if it is not
-- `grant.limited`.
function M.room(ctx, queue, grant, limit, flags)
  if not grant.limited then return nil end
  return limit - slots.used_by_queue(ctx, queue, flags)
end

-- Pops under a limit. `ready` grants up to `want`, `room` slots are free. If nothing else
-- is ready, those that are pending go.
function M.grant(ctx, queue, grant, want, room, ready)
  if room < want then want = room end
  local got = ready(ctx, queue, grant, want)
  if got >= want or grant.cut then return got end
  if waiting.promote(ctx, queue.own, min(want - got, ctx.bounds.released)) == 0 then return got end
  return got + ready(ctx, queue, grant, want - got)
end

-- Gives back one slot of a throttle, or forgets that the job waits for it. Returns whether
-- it held one. Write nothing of an older record afterwards.
function M.release_one(ctx, id, jid)
  local queue, freed = slots.queue_of(ctx, id), slots.release(ctx, id, jid)
  if queue and not freed and slots.release_of_queue(ctx, queue, jid) then
    freed = true
    waiting.mark(ctx, jid)
  end
  if not freed then call("ZREM", ctx.keys.pending .. id, jid) end
  waiting.offer(ctx, id)
  if queue then queues.wake(ctx, queue) end
  return freed
end

-- The lease ended, or the job is deleted: its slots go to others, and a worker that
-- found the queue full is woken.
function M.release(ctx, queue, jid, r)
  if not has(r.flags, THROTTLED) and not has(r.flags, NAMED) then return end
  r.flags = record.without(r.flags, THROTTLED)
  for _, id in ipairs(definition.others(ctx, queue, jid, r)) do
    slots.release(ctx, id, jid)
    waiting.offer(ctx, id)
  end
  local _, flags = queues.control(queue)
  if queues.is_odd(flags) then slots.forget_freed(ctx, queue, jid) end
  if not queues.is_limited(flags) then return end
  waiting.offer(ctx, queue.own)
  queues.wake(ctx, queue)
end

function M.set(ctx, id, maximum, span) return waiting.set(ctx, id, tonumber(maximum), span) end
function M.delete(ctx, id) return waiting.delete(ctx, id) end
function M.state(ctx, id) return waiting.state(ctx, id) end

-- The maximum, and for how many seconds (-1: no end, -2: not defined).
function M.definition(ctx, id)
  local found = waiting.state(ctx, id)
  local left = found[4]
  return found[1], left < 0 and left or floor((left + 500) / 1000)
end

function M.continue(ctx) return waiting.continue(ctx) end

-- An empty queue is forgotten, and its limit with it.
function M.forget(ctx, queue) return waiting.forget(ctx, queue) end

-- The sets of the jobs that hold a slot and of those that wait for one.
function M.sets(ctx, id)
  local queue = slots.queue_of(ctx, id)
  return queue and queue.leases or ctx.keys.holders .. id, ctx.keys.pending .. id
end

return M
