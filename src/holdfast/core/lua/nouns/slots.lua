-- slots: who holds a slot of a throttle, and whom a free one lets go, in roots where the
-- leases of a queue are the holders of its own throttle `ql:q:<queue>`.
--
-- All others have a set of holders `h:<id>`. Two odd cases of a queue's own throttle are
-- kept beside its leases: holders that run elsewhere (it was named by them), and leases
-- whose slot was freed by hand (`hx:<id>`). Control flag HAS_ODD says that there are any.
local late = require("base.late")
local keys = require("base.keys")
local aside = require("nouns.aside")
local bounded = require("nouns.bounded")
local limits = require("nouns.limits")
local named = require("nouns.named")
local queues = require("nouns.queue")
local M = {}

local NO_LIMIT = named.NO_LIMIT
local OWN = "^ql:q:(.+)$"

local call, match, min
late.bind(function() call, match, min = redis.call, string.match, math.min end)

-- The queue whose own throttle `id` is, or nil.
function M.queue_of(at, id)
  local name = match(id, OWN)
  if name then return keys.of_queue(at, name) end
end

-- How many hold a slot of a queue's own throttle. `flags` are those of its control.
function M.used_by_queue(at, queue, flags)
  local used = call("ZCARD", queue.leases)
  if not bounded.is_odd(flags) then return used end
  return used + call("ZCARD", at.keys.holders .. queue.own) - call("ZCARD", at.keys.freed .. queue.own)
end

function M.used(at, id)
  local queue = M.queue_of(at, id)
  if not queue then return call("ZCARD", at.keys.holders .. id) end
  local _, flags = queues.control(queue)
  return M.used_by_queue(at, queue, flags)
end

-- How many slots are free.
function M.free(at, id)
  local queue = M.queue_of(at, id)
  if queue then
    local _, flags, limit = queues.control(queue)
    return bounded.is_limited(flags) and limit - M.used_by_queue(at, queue, flags) or NO_LIMIT
  end
  local most = limits.in_force(at, id)
  if most == 0 then return NO_LIMIT end
  return most - call("ZCARD", at.keys.holders .. id)
end

-- Takes a slot of a throttle that is not the own one of the job's queue.
function M.hold(at, id, jid)
  call("ZADD", at.keys.holders .. id, at.now, jid)
  local queue = M.queue_of(at, id)
  if queue then bounded.set_odd(queue, true) end
end

-- Nothing odd is left of a queue's own throttle.
local function tidy(at, queue)
  local k, own = at.keys, queue.own
  if call("EXISTS", k.holders .. own, k.freed .. own) == 0 then bounded.set_odd(queue, false) end
end

-- Gives back such a slot. Says whether the job held it.
function M.let_go(at, id, jid)
  if call("ZREM", at.keys.holders .. id, jid) == 0 then return false end
  local queue = M.queue_of(at, id)
  if queue then tidy(at, queue) end
  return true
end

-- A job runs on without the slot of its queue. Says whether it held it.
function M.free_by_hand(at, queue, jid)
  if not call("ZSCORE", queue.leases, jid) or call("ZADD", at.keys.freed .. queue.own, at.now, jid) == 0 then
    return false
  end
  bounded.set_odd(queue, true)
  return true
end

-- Such a job's lease ended.
function M.forget_freed(at, queue, jid)
  if call("ZREM", at.keys.freed .. queue.own, jid) == 1 then tidy(at, queue) end
end

-- Lets pending jobs go, as many as slots are free and one call may promote. Says whether
-- somebody has to go on: what is left otherwise is let go by those that hold slots then.
local function promote(at, id)
  local pending = call("ZCARD", at.keys.pending .. id)
  if pending == 0 then return false end
  local free = M.free(at, id)
  if free < 1 then return false end
  local most = min(free, at.bounds.released - at.released)
  if most >= 1 then at.released = at.released + aside.promote(at, id, most) end
  return pending > most and (free == NO_LIMIT or most < 1)
end

M.promote = promote

-- The same, noting that somebody has to go on.
function M.offer(at, id)
  if promote(at, id) then limits.tend_at(at, id, 0) end
end

return M
