-- limits: how many jobs of a throttle may run at once, and until when, in roots where
-- nobody else writes that. Field id of `H`; a limit whose end has come binds nobody.
--
-- Throttles that something is left to do for are in the set `U`, by when; root flag
-- TENDING says that there are any.
local root = require("base.root")
local M = {}

local FORM = "<ddd"
M.NEVER, M.MARKED = 1 / 0, -1
local NONE = { maximum = 0, ends = M.NEVER, cursor = M.MARKED, is_defined = false }

-- maximum (0: none), ends (ms), cursor (how far the jobs that ran before a queue's limit
-- are marked; MARKED: all), is_defined.
function M.read(ctx, id)
  local packed = call("HGET", ctx.keys.limits, id)
  if not packed then return NONE end
  local maximum, ends, cursor = unpack_bytes(FORM, packed)
  return { maximum = maximum, ends = ends, cursor = cursor, is_defined = true }
end

-- The limit that binds now, 0 for none.
function M.in_force(ctx, id)
  local packed = call("HGET", ctx.keys.limits, id)
  if not packed then return 0 end
  local maximum, ends = unpack_bytes(FORM, packed)
  return ends > ctx.now and maximum or 0
end

function M.write(ctx, id, maximum, ends, cursor)
  call("HSET", ctx.keys.limits, id, pack(FORM, maximum, ends, cursor))
end

-- Says whether there was such a definition.
function M.delete(ctx, id) return call("HDEL", ctx.keys.limits, id) end

-- [cursor, id …]: the throttles that have a definition.
function M.page(ctx, cursor, count)
  local found = call("HSCAN", ctx.keys.limits, cursor, "COUNT", count)
  local reply, pairs_ = { found[1] }, found[2]
  for i = 1, #pairs_, 2 do reply[#reply + 1] = pairs_[i] end
  return reply
end

-- Notes when a throttle has to be looked at; NEVER: not again.
function M.schedule_upkeep(ctx, id, when)
  if when < M.NEVER then
    call("ZADD", ctx.keys.upkeep, when, id)
    return root.set_flag(ctx, root.UPKEEP, true)
  end
  if call("ZREM", ctx.keys.upkeep, id) == 1 and call("EXISTS", ctx.keys.upkeep) == 0 then
    root.set_flag(ctx, root.UPKEEP, false)
  end
end

-- A throttle to be looked at by now, or nil.
function M.due(ctx) return call("ZRANGE", ctx.keys.upkeep, "-inf", ctx.now, "BYSCORE", "LIMIT", 0, 1)[1] end

return M
