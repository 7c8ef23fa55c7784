-- holders: throttles that keep a set of the jobs holding their slots, and a set of
-- those waiting for one. Any throttle may bind any job.
--
-- Flag THROTTLED: slots may be held. A queue's own throttle is a throttle like others.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local config = require("nouns.config")
local history = require("nouns.history")
local job = require("nouns.job")
local named = require("nouns.named")
local state = require("nouns.state")
local M = {}

local THROTTLED, NO_LIMIT = record.FLAG.THROTTLED, named.NO_LIMIT
local RELEASED, PIECE = 10, 512 -- jobs that a release without a limit lets go; jobs taken at once

local call, floor
late.bind(function() call, floor = redis.call, math.floor end)

-- The first throttle without a free slot; the last one, the queue's own, has `room`.
local function first_full(at, ids, room)
  local count = #ids
  for i = 1, count do
    if (i == count and room or named.free_slots(at, ids[i])) < 1 then return ids[i] end
  end
end

-- Sets a job aside, pending on the throttle that is full.
function M.park(at, queue, jid, r, id)
  if r.state ~= state.THROTTLED then history.tell(at, jid, r, history.THROTTLED, queue.name) end
  state.move(r, state.THROTTLED)
  call("ZADD", at.keys.pending .. id, at.now, jid)
  call("ZADD", queue.throttled, at.now, jid)
end

-- The throttles of a job that is put; `r` still says which queue it comes from.
function M.assign(at, queue, jid, r, ids)
  if ids or record.has(r.flags, record.FLAG.NAMED) then
    named.name(at, queue, jid, r, ids or {}, keys.of_queue(at, r.queue).own)
  end
end

-- The throttle that a job which is put finds full, or nil.
function M.is_full(at, queue, jid, r) return first_full(at, named.ids(at, queue, jid, r)) end

-- A job set aside is put elsewhere or deleted.
function M.withdraw(at, queue, jid, r)
  call("ZREM", queue.throttled, jid)
  for _, id in ipairs(named.ids(at, queue, jid, r)) do call("ZREM", at.keys.pending .. id, jid) end
end

-- A job whose lease was lost keeps its slots.
function M.keep() end

-- For a pop: the free slots of the queue's own throttle.
function M.room(at, queue, give)
  give.limited, give.room = true, named.free_slots(at, queue.own)
  return give.room
end

-- All slots a job needs, or none: then it is set aside, and the answer is true.
function M.take(at, queue, jid, r, give)
  local ids = named.ids(at, queue, jid, r)
  local full = first_full(at, ids, give.room)
  if full then
    M.park(at, queue, jid, r, full)
    job.write(at, jid, r)
    return true
  end
  for i = 1, #ids do call("ZADD", at.keys.holders .. ids[i], 0, jid) end
  r.flags, give.room = record.with(r.flags, THROTTLED), give.room - 1
end

-- `ready` looks at so many jobs and says how many it granted, and how many it saw.
M.by_round = true
function M.grant(at, queue, give, want, room, ready)
  if room < 1 then return 0 end
  local got, seen = ready(at, queue, give, want)
  if got == want or seen == 0 then return got end -- the usual end
  for _ = 2, config.of_queue(at, queue.name, "max-pop-retry") do
    local more
    more, seen = ready(at, queue, give, want - got)
    got = got + more
    if got == want or seen == 0 then return got end
  end
  return got
end

-- The first `count` pending jobs become ready; they get the slot when they are popped.
local function promote(at, id, count)
  while count >= 1 do
    local pending = call("ZPOPMIN", at.keys.pending .. id, count < PIECE and floor(count) or PIECE)
    if not pending[1] then return end
    for i = 1, #pending, 2 do
      local jid = pending[i]
      local r = job.read(at, jid)
      local queue = r and keys.of_queue(at, r.queue)
      if r and call("ZREM", queue.throttled, jid) == 1 then
        job.make_ready(at, queue, jid, r)
        job.write(at, jid, r)
        count = count - 1
      end
    end
  end
end

-- One throttle's slot comes back, or the job waits for it no more.
function M.release_one(at, id, jid)
  if call("ZREM", at.keys.holders .. id, jid) == 0 then call("ZREM", at.keys.pending .. id, jid) end
  if call("EXISTS", at.keys.pending .. id) == 0 then return end
  local free = named.free_slots(at, id)
  promote(at, id, free == NO_LIMIT and RELEASED or free)
end

-- The lease ended, or the job is deleted.
function M.release(at, queue, jid, r)
  r.flags = record.without(r.flags, THROTTLED)
  for _, id in ipairs(named.ids(at, queue, jid, r)) do M.release_one(at, id, jid) end
end

-- A new maximum, and for how many seconds (nil: as before).
function M.set(at, id, maximum, seconds)
  local key = at.keys.throttle .. id
  call("HSET", key, "id", id, "maximum", maximum)
  if seconds then call("EXPIRE", key, seconds) end
  M.offer(at, id)
end

-- No definition, no limit; who holds a slot keeps it.
function M.delete(at, id)
  call("UNLINK", at.keys.throttle .. id)
  M.offer(at, id)
end

-- The sets of who holds a slot and of who waits for one.
function M.sets(at, id) return at.keys.holders .. id, at.keys.pending .. id end

-- Lets pending jobs go, as many as there are slots.
function M.offer(at, id)
  if call("EXISTS", at.keys.pending .. id) == 0 then return end
  local free = named.free_slots(at, id)
  promote(at, id, free == NO_LIMIT and call("ZCARD", at.keys.pending .. id) or free)
end

return M
