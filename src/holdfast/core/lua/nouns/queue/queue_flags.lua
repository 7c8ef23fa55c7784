-- queue_flags: the flags of a queue's control record that limit what it may run and hold.
local bits = require("base.bits")
local queues = require("nouns.queue.queue")
local M = {}

-- Whether a put has to look at its limits.
local function is_checked(flags) return queues.is_limited(flags) or queues.has_most(flags) end

-- Raises or lowers a flag of the control record. The limited bit of the sequence counter
-- is up while one of those stands that a put has to look at.
local function set_flag(queue, flag, on, new_limit)
  local due, flags, limit, heartbeat = queues.control(queue)
  local new = bits.set(flags, flag, on)
  local checked = is_checked(new)
  if checked ~= is_checked(flags) then call(checked and "INCRBY" or "DECRBY", queue.sequence, queues.LIMITED) end
  if new ~= flags or new_limit then queues.set_control(queue, due, new, new_limit or limit, heartbeat) end
end

-- How many of its jobs may run at once, 0 for any number.
function M.set_limit(queue, limit) set_flag(queue, queues.HAS_LIMIT, limit > 0, limit) end

-- Whether its waiting jobs are limited; whether slots of its own throttle are
-- not held by its leases one for one.
function M.set_most(queue, on) set_flag(queue, queues.HAS_MOST, on) end
function M.set_odd(queue, on) set_flag(queue, queues.HAS_ODD, on) end

return M
