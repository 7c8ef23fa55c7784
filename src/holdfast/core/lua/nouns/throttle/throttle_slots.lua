-- throttle_slots: which jobs hold a slot of a throttle, in roots where the leases of a queue are
-- the holders of its own throttle `ql:q:<queue>`.
--
-- All others have a set of holders `h:<id>`. Two odd cases of a queue's own throttle are
-- kept beside its leases: holders that run elsewhere (it was named by them), and leases
-- whose slot was freed by hand (`hx:<id>`). Control flag HAS_ODD is up while there are any.
local keys = require("base.keys")
local definition = require("nouns.throttle.throttle_definition")
local queue_flags = require("nouns.queue.queue_flags")
local queues = require("nouns.queue.queue")
local M = {}

local NO_LIMIT = definition.NO_LIMIT
local OWN = "^ql:q:(.+)$"

-- The queue whose own throttle `id` is, or nil.
function M.queue_of(ctx, id)
  local name = match(id, OWN)
  if name then return keys.of_queue(ctx, name) end
end

-- How many jobs hold a slot of a queue's own throttle. `flags` are those of its control.
function M.used_by_queue(ctx, queue, flags)
  local used = call("ZCARD", queue.leases)
  if not queues.is_odd(flags) then return used end
  return used + call("ZCARD", ctx.keys.holders .. queue.own) - call("ZCARD", ctx.keys.freed .. queue.own)
end

function M.used(ctx, id)
  local queue = M.queue_of(ctx, id)
  if not queue then return call("ZCARD", ctx.keys.holders .. id) end
  local _, flags = queues.control(queue)
  return M.used_by_queue(ctx, queue, flags)
end

-- How many slots are free.
function M.free(ctx, id)
  local queue = M.queue_of(ctx, id)
  if queue then
    local _, flags, limit = queues.control(queue)
    return queues.is_limited(flags) and limit - M.used_by_queue(ctx, queue, flags) or NO_LIMIT
  end
  local most = definition.in_force(ctx, id)
  if most == 0 then return NO_LIMIT end
  return most - call("ZCARD", ctx.keys.holders .. id)
end

-- Takes a slot of a throttle that is not the own one of the job's queue.
function M.hold(ctx, id, jid)
  call("ZADD", ctx.keys.holders .. id, ctx.now, jid)
  local queue = M.queue_of(ctx, id)
  if queue then queue_flags.set_odd(queue, true) end
end

-- Lowers HAS_ODD, if nothing odd is left of a queue's own throttle.
local function tidy(ctx, queue)
  local k, own = ctx.keys, queue.own
  if call("EXISTS", k.holders .. own, k.freed .. own) == 0 then queue_flags.set_odd(queue, false) end
end

-- Gives back such a slot. Returns whether the job held it.
function M.release(ctx, id, jid)
  if call("ZREM", ctx.keys.holders .. id, jid) == 0 then return false end
  local queue = M.queue_of(ctx, id)
  if queue then tidy(ctx, queue) end
  return true
end

-- A job runs on without the slot of its queue. Returns whether it held it.
function M.release_of_queue(ctx, queue, jid)
  if not call("ZSCORE", queue.leases, jid) or call("ZADD", ctx.keys.freed .. queue.own, ctx.now, jid) == 0 then
    return false
  end
  queue_flags.set_odd(queue, true)
  return true
end

-- Such a job's lease ended.
function M.forget_freed(ctx, queue, jid)
  if call("ZREM", ctx.keys.freed .. queue.own, jid) == 1 then tidy(ctx, queue) end
end

return M
