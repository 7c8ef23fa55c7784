-- holders: throttles that keep a set of the jobs holding their slots, and a set of
-- those waiting for one. Any throttle may bind any job.
--
-- Flag THROTTLED: slots may be held. A queue's own throttle is a throttle like others.
-- A maximum lies where other programs write it too, so it is read at each use.
local late = require("base.late")
local record = require("base.record")
local aside = require("nouns.aside")
local config = require("nouns.config")
local job = require("nouns.job")
local named = require("nouns.named")
local M = {}

local THROTTLED, NO_LIMIT = record.FLAG.THROTTLED, named.NO_LIMIT
local RELEASED = 10 -- jobs that a release without a limit lets go

local call
late.bind(function() call = redis.call end)

-- The maximum, and for how many seconds (-1: no end, -2: not defined). A text that is no
-- number counts as no limit.
function M.definition(at, id)
  local key = at.keys.throttle .. id
  local most = tonumber(call("HGET", key, "maximum") or 0)
  return most == most and most or 0, call("TTL", key)
end

local function free_slots(at, id)
  local text = call("HGET", at.keys.throttle .. id, "maximum")
  local most = text and tonumber(text) or 0
  if most == 0 or most ~= most then return NO_LIMIT end
  return most - call("ZCARD", at.keys.holders .. id)
end

M.park, M.assign = aside.park, named.assign

-- The throttle that a job which is put finds full, or nil.
function M.is_full(at, queue, jid, r) return named.first_full(at, named.ids(at, queue, jid, r), free_slots) end

-- A job set aside is put elsewhere or deleted.
function M.withdraw(at, queue, jid, r) aside.withdraw(at, queue, jid, named.ids(at, queue, jid, r)) end

-- A job whose lease was lost keeps its slots.
function M.keep() end

-- For a pop: the free slots of the queue's own throttle.
function M.room(at, queue, give)
  give.limited, give.room = true, free_slots(at, queue.own)
  return give.room
end

-- All slots a job needs, or none: then it is set aside, and the answer is true.
function M.take(at, queue, jid, r, give)
  local ids = named.ids(at, queue, jid, r)
  local full = named.first_full(at, ids, free_slots, not ids.bare and give.room)
  if full then
    M.park(at, queue, jid, r, full)
    job.write(at, jid, r)
    return true
  end
  for i = 1, #ids do call("ZADD", at.keys.holders .. ids[i], "0", jid) end
  r.flags = record.with(r.flags, THROTTLED)
  if not ids.bare then give.room = give.room - 1 end
end

-- More rounds, where the first found jobs that had to be set aside.
local function more(at, queue, give, want, ready)
  local all = 0
  for _ = 2, config.of_queue(at, queue.name, "max-pop-retry") do
    local got, seen = ready(at, queue, give, want - all)
    all = all + got
    if all == want or seen == 0 then break end
  end
  return all
end

-- `ready` looks at so many jobs and says how many it granted, and how many it saw.
M.by_round = true
function M.grant(at, queue, give, want, room, ready)
  if room < 1 then return 0 end
  local got, seen = ready(at, queue, give, want)
  if got == want or seen == 0 then return got end -- the usual end
  return got + more(at, queue, give, want - got, ready)
end

-- One throttle's slot comes back, or the job waits for it no more.
function M.release_one(at, id, jid)
  if call("ZREM", at.keys.holders .. id, jid) == 0 then call("ZREM", at.keys.pending .. id, jid) end
  if call("EXISTS", at.keys.pending .. id) == 0 then return end
  local free = free_slots(at, id)
  aside.promote(at, id, free == NO_LIMIT and RELEASED or free)
end

-- The lease ended, or the job is deleted.
function M.release(at, queue, jid, r)
  r.flags = record.without(r.flags, THROTTLED)
  local ids = named.ids(at, queue, jid, r)
  for i = 1, #ids do M.release_one(at, ids[i], jid) end
end

-- A new maximum as text, for `span` ms (0: as long as before).
function M.set(at, id, maximum, span)
  local key = at.keys.throttle .. id
  call("HSET", key, "id", id, "maximum", maximum)
  if span > 0 then call("PEXPIRE", key, span) end
  M.offer(at, id)
end

-- No definition, no limit; who holds a slot keeps it.
function M.delete(at, id)
  call("UNLINK", at.keys.throttle .. id)
  M.offer(at, id)
end

-- An empty queue is forgotten; its limit is not the queue's.
function M.forget() end

-- The sets of who holds a slot and of who waits for one.
function M.sets(at, id) return at.keys.holders .. id, at.keys.pending .. id end

-- Lets pending jobs go, as many as there are slots.
function M.offer(at, id)
  local pending = at.keys.pending .. id
  if call("EXISTS", pending) == 0 then return end
  local free = free_slots(at, id)
  aside.promote(at, id, free == NO_LIMIT and call("ZCARD", pending) or free)
end

return M
