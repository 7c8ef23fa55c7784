-- queue: its sequence counter, its control record, its wake key.
--
-- Four bits are part of the sequence counter, so that a put reads them for nothing: IDLE (a worker may be
-- waiting at the wake key), LIMITED (there is a limit on running jobs), KNOWN (it is in the list of queues) and,
-- the highest, INDEXED (it was entered in the index, see there).
local bits = require("base.bits")
local tally = require("nouns.queue.tally")
local M = {}

local IDLE, LIMITED, KNOWN, INDEXED = 2 ^ 45, 2 ^ 46, 2 ^ 47, 2 ^ 48
local BOTH = KNOWN + INDEXED -- from here on both are up, as they are of most queues
local CONTROL = "<dBI4d"
M.NEVER = 1 / 0 -- as due time: no timer; as heartbeat: the default
M.IDLE, M.LIMITED, M.INDEXED = IDLE, LIMITED, INDEXED
M.PAUSED, M.HAS_LIMIT, M.HAS_MOST, M.HAS_ODD = 1, 2, 4, 8

-- The flags of its control record: it hands out nothing; the number of its jobs that
-- may run at once, or wait, is limited; slots of its own throttle and its leases differ.
function M.is_paused(flags) return bits.has(flags, M.PAUSED) end
function M.is_limited(flags) return bits.has(flags, M.HAS_LIMIT) end
function M.has_most(flags) return bits.has(flags, M.HAS_MOST) end
function M.is_odd(flags) return bits.has(flags, M.HAS_ODD) end

local function register(ctx, queue, count)
  if ctx.index then ctx.index.admit(ctx, queue, count) end
  -- In order of first use, also within a millisecond.
  call("ZADD", ctx.keys.queues, "NX", ctx.order.pending(ctx, ctx.keys.queues), queue.name)
  if ctx.watched then ctx.watched.queues = true end
  call("INCRBY", queue.sequence, KNOWN)
end

-- The sequence counter with its bits.
local function raw_of(queue) return tonumber(call("GET", queue.sequence) or 0) end

function M.is_entered(queue) return raw_of(queue) >= INDEXED end

-- How many sequence numbers were taken so far.
function M.made_ready(queue) return raw_of(queue) % IDLE end

-- The sequence number, and whether the idle and the limited bit are up.
local function parts_of(ctx, raw)
  local rest = raw % KNOWN
  return raw % IDLE + ctx.order.START, rest % LIMITED >= IDLE, rest >= LIMITED
end

-- Takes `count` sequence numbers for jobs that were put before: the caller uses
-- first + 1 … first + count. Also returns whether the idle and the limited bit are up.
function M.take_sequence(ctx, queue, count)
  tally.count(ctx, queue, "again", count)
  local raw = call("INCRBY", queue.sequence, count) - count
  if ctx.index and raw < INDEXED and count > 0 then ctx.index.enter(ctx, queue) end
  return parts_of(ctx, raw)
end

-- The same for jobs that are put, which makes the queue a known one, unless it is `hidden`.
function M.enter(ctx, queue, count, hidden)
  local raw = call("INCRBY", queue.sequence, count) - count
  if raw < BOTH then
    if not bits.has(raw, KNOWN) and not hidden then register(ctx, queue, count) end
    if ctx.index and raw < INDEXED and count > 0 then ctx.index.enter(ctx, queue) end
  end
  return parts_of(ctx, raw)
end

-- Numbers that `enter` took last are not used after all.
function M.return_sequence(queue, count) call("DECRBY", queue.sequence, count) end

-- Makes sure that the queue is in the list of known ones. Returns whether it has a limit.
function M.know(ctx, queue)
  local _, _, limited = M.enter(ctx, queue, 0)
  return limited
end

-- It is not in that list any more.
function M.forget(queue)
  if bits.has(raw_of(queue), KNOWN) then call("DECRBY", queue.sequence, KNOWN) end
end

-- Whether a worker may be waiting.
function M.is_idle(queue) return bits.has(raw_of(queue), IDLE) end

-- Wakes a worker, given that the idle bit is up. A token that lies in the list means that
-- none is blocked on it, so then the bit goes down instead.
function M.signal(queue)
  if call("EXISTS", queue.wake_key) == 1 then
    call("DECRBY", queue.sequence, IDLE)
  else
    call("RPUSH", queue.wake_key, "")
  end
end

-- Wakes a worker if the idle bit is up.
function M.signal_if_idle(queue)
  if M.is_idle(queue) then M.signal(queue) end
end

-- The same for a queue that a job came back to without a sequence number.
function M.ready_again(ctx, queue)
  local raw = raw_of(queue)
  if ctx.index and raw < INDEXED then ctx.index.enter(ctx, queue) end
  if bits.has(raw, IDLE) then M.signal(queue) end
end

-- A worker is going to wait.
function M.raise_idle(queue)
  if not bits.has(raw_of(queue), IDLE) then call("INCRBY", queue.sequence, IDLE) end
end

-- Wakes a worker without looking at the bit: for reasons (pause, limit) that do not raise it.
function M.wake(ctx, queue)
  if ctx.index then ctx.index.again(ctx, queue) end
  if call("EXISTS", queue.wake_key) == 0 then call("RPUSH", queue.wake_key, "") end
end

-- Due time of the next timer, flags, limit, own heartbeat in ms.
function M.control(queue)
  local packed = call("GET", queue.control)
  if not packed then return M.NEVER, 0, 0, M.NEVER end
  return unpack_bytes(CONTROL, packed)
end

function M.set_control(queue, due, flags, limit, heartbeat)
  if due == M.NEVER and flags == 0 and limit == 0 and heartbeat == M.NEVER then
    call("UNLINK", queue.control)
  else
    call("SET", queue.control, pack(CONTROL, due, flags, limit, heartbeat))
  end
end

-- Sets the next due time, which is all that changes.
function M.set_due(ctx, queue, due, flags, limit, heartbeat)
  M.set_control(queue, due, flags, limit, heartbeat)
  if ctx.index then ctx.index.due(ctx, queue, due) end
end

-- Notes a timer at `when`. True if it is earlier than all that was known, so
-- that a sleeping worker has to be woken.
function M.lower_due(ctx, queue, when)
  local due, flags, limit, heartbeat = M.control(queue)
  if due <= when then return false end
  M.set_control(queue, when, flags, limit, heartbeat)
  if ctx.index then ctx.index.lowered(ctx, queue, when) end
  return true
end

-- The same, and a worker that waits is woken.
function M.due_at(ctx, queue, when)
  if M.lower_due(ctx, queue, when) then M.signal_if_idle(queue) end
end

function M.set_paused(ctx, queue, paused)
  local due, flags, limit, heartbeat = M.control(queue)
  if M.is_paused(flags) == paused then return false end
  M.set_control(queue, due, bits.set(flags, M.PAUSED, paused), limit, heartbeat)
  if not paused then M.wake(ctx, queue) end
  return true
end

function M.set_heartbeat(queue, heartbeat)
  local due, flags, limit = M.control(queue)
  M.set_control(queue, due, flags, limit, heartbeat)
end

return M
