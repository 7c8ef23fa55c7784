-- queue_flags: what a queue's control record says about how much it may run and hold.
local queues = require("nouns.queue")
local M = {}

function M.is_limited(flags) return flags % 4 >= queues.HAS_LIMIT end
function M.is_odd(flags) return flags % 16 >= queues.HAS_ODD end

function M.has_most(flags) return flags % 8 >= queues.HAS_MOST end

-- Raises or lowers a flag of the control record. The limited bit of the sequence counter
-- is up while one of those stands that a put has to look at.
local function set_flag(queue, flag, on, new_limit)
  local due, flags, limit, heartbeat = queues.control(queue)
  local had, bit_was = flags % (2 * flag) >= flag, flags % 8 >= queues.HAS_LIMIT
  if had ~= on then flags = on and flags + flag or flags - flag end
  local bit = flags % 8 >= queues.HAS_LIMIT
  if bit ~= bit_was then call(bit and "INCRBY" or "DECRBY", queue.sequence, queues.LIMITED) end
  if had ~= on or new_limit then queues.set_control(queue, due, flags, new_limit or limit, heartbeat) end
end

-- How many of its jobs may run at once, 0 for any number.
function M.set_limit(queue, limit) set_flag(queue, queues.HAS_LIMIT, limit > 0, limit) end

-- Whether it may hold so many waiting jobs only; whether slots of its own throttle are
-- not held by its leases one for one.
function M.set_most(queue, on) set_flag(queue, queues.HAS_MOST, on) end
function M.set_odd(queue, on) set_flag(queue, queues.HAS_ODD, on) end

return M
