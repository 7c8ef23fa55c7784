-- index: which queues of a root may have something to hand out, for workers of more queues than they
-- can look into.
--
-- `R` holds the queues that have ready jobs, in the order of the list of known ones. The bit INDEXED of a queue's
-- sequence counter is up when it was entered, so a put into a queue that has work already pays one comparison. It
-- stays up while a queue that is paused or full is left out: it is entered again when that ends. `T` holds queues
-- by their next due time. `N` holds the fleets (workers of the same queues) of which a worker may wait; each has a
-- wake key of its own.
--
-- All of it is a hint: a queue that is here for nothing is taken out by the pop that finds nothing.
local refuse = require("base.refuse")
local queues = require("nouns.queue.queue")
local settings = require("nouns.setting.settings")
local M = {}

local INDEXED, NEVER = queues.INDEXED, queues.NEVER
local MOST_FLEETS = 256 -- woken by one call; more of them look by themselves
local TOKEN_KEPT = 3600 -- seconds that a token lies in the wake key of a fleet without workers
local DUE_SOON_MS = 5000 -- ms: what is due later is found by an idle worker's next look

-- A command on a key of the index. If that holds something that is none of it, it goes, and all known queues are
-- looked through again.
local function run(ctx, command, key, ...)
  local done, reply = pcall(call, command, key, ...)
  if done then return reply end
  if not find(type(reply) == "table" and reply.err or reply, "WRONGTYPE", 1, true) then error(reply) end
  call("UNLINK", key)
  call("HDEL", ctx.keys.root, "round-at", "round-from", "round-done")
  return call(command, key, ...)
end

-- A token that lies there means that no worker is blocked on the key, so then the fleet does not wait any more.
local function wake(ctx, fleet)
  local key = ctx.keys.fleet_wake .. fleet
  if call("EXISTS", key) == 1 then return run(ctx, "ZREM", ctx.keys.fleets, fleet) end
  run(ctx, "RPUSH", key, "")
  call("EXPIRE", key, TOKEN_KEPT)
end

-- Wakes one waiting worker of each fleet.
local function wake_all(ctx)
  local fleets = run(ctx, "ZRANGE", ctx.keys.fleets, 0, MOST_FLEETS - 1, "REV")
  for i = 1, #fleets do wake(ctx, fleets[i]) end
end

local function add(ctx, queue)
  local place = call("ZSCORE", ctx.keys.queues, queue.name) or ctx.now
  if run(ctx, "ZADD", ctx.keys.ready, "NX", place, queue.name) == 1 then wake_all(ctx) end
end

-- A queue that is not known is used: there is a most of them. `count` are the numbers that were taken for it. What was
-- going to be dropped of one that was known once, stays.
function M.admit(ctx, queue, count)
  local most = settings.number(ctx, settings.MAX_QUEUES)
  if call("ZCARD", ctx.keys.queues) >= most then
    if call("DECRBY", queue.sequence, count) == 0 then call("UNLINK", queue.sequence) end
    refuse.call("TOO_MANY_QUEUES", ("there are %d queues, and max-queues allows no more: %s"):format(most, queue.name))
  end
  call("PERSIST", queue.sequence)
  call("PERSIST", queue.tallies)
  call("PERSIST", queue.minutes)
end

-- The queue, whose bit is down, gets a ready job.
function M.enter(ctx, queue)
  call("INCRBY", queue.sequence, INDEXED)
  add(ctx, queue)
end

-- The queue may hand out again what it has: it is not paused or full any more.
function M.again(ctx, queue)
  if run(ctx, "ZSCORE", ctx.keys.ready, queue.name) then return end
  if not queues.is_entered(queue) then call("INCRBY", queue.sequence, INDEXED) end
  add(ctx, queue)
end

-- Notes when the queue has something due next.
function M.due(ctx, queue, when)
  if when < NEVER then
    run(ctx, "ZADD", ctx.keys.timer, when, queue.name)
  else
    run(ctx, "ZREM", ctx.keys.timer, queue.name)
  end
end

-- When the queue of that name has something due, as it is noted, or nil.
function M.timer_of(ctx, name) return run(ctx, "ZSCORE", ctx.keys.timer, name) or nil end

-- The first queue that has something due after now, and when.
local function next_due(ctx)
  local found = run(ctx, "ZRANGE", ctx.keys.timer, "(" .. format("%.17g", ctx.now), "+inf", "BYSCORE", "LIMIT", 0, 1,
    "WITHSCORES")
  return found[1], tonumber(found[2])
end

-- It has something due earlier than was known: a waiting worker is woken, unless it is going to look before. The end
-- of a pause that is noted may come before it.
function M.lowered(ctx, queue, when)
  run(ctx, "ZADD", ctx.keys.timer, "LT", when, queue.name)
  if when <= ctx.now or next_due(ctx) == queue.name then wake_all(ctx) end
end

-- After a pop. `is_done`: it could take nothing more; `due`: when that changes by itself.
function M.settle(ctx, queue, is_done, due)
  local is_empty = call("EXISTS", queue.waiting) == 0
  if is_empty or is_done then run(ctx, "ZREM", ctx.keys.ready, queue.name) end
  if is_empty and queues.is_entered(queue) then call("DECRBY", queue.sequence, INDEXED) end
  M.due(ctx, queue, due)
end

-- A job left the queue without a pop. Workers that do not serve it never pop there, so no other call would remove it.
-- What else is due there must be in the timer from now on: while the queue was paused or full, the timer had the end of
-- that. The caller has written already: a key that holds something else must not end it halfway.
function M.left(ctx, queue)
  if call("EXISTS", queue.waiting) == 1 then return end
  local done, entered = pcall(queues.is_entered, queue)
  if not (done and entered) then return end
  local known, due = pcall(queues.control, queue)
  if not known then return end
  if run(ctx, "ZREM", ctx.keys.ready, queue.name) == 1 and due < NEVER then
    run(ctx, "ZADD", ctx.keys.timer, "LT", due, queue.name)
  end
  call("DECRBY", queue.sequence, INDEXED)
end

-- A pop found the queue paused until `ends`.
function M.leave_out(ctx, queue, ends)
  run(ctx, "ZREM", ctx.keys.ready, queue.name)
  M.due(ctx, queue, ends)
end

-- The queue is forgotten.
function M.drop(ctx, queue)
  run(ctx, "ZREM", ctx.keys.ready, queue.name)
  run(ctx, "ZREM", ctx.keys.timer, queue.name)
end

-- Somebody of the fleet is going to wait.
function M.wait(ctx, fleet) run(ctx, "ZADD", ctx.keys.fleets, ctx.now, fleet) end

-- Somebody of the fleet was woken and can take no more: wakes another one, if there is something.
function M.hand_on(ctx, fleet)
  local due = run(ctx, "ZRANGE", ctx.keys.timer, "-inf", ctx.now + DUE_SOON_MS, "BYSCORE", "LIMIT", 0, 1)
  if not due[1] and call("EXISTS", ctx.keys.ready) == 0 then return end
  if run(ctx, "ZSCORE", ctx.keys.fleets, fleet) then wake(ctx, fleet) end
end

-- The names of `count` queues from place `first` on that have ready jobs.
function M.ready(ctx, first, count) return run(ctx, "ZRANGE", ctx.keys.ready, first, first + count - 1) end

-- The same of those whose timer has come.
function M.overdue(ctx, first, count)
  return run(ctx, "ZRANGE", ctx.keys.timer, "-inf", ctx.now, "BYSCORE", "LIMIT", first, count)
end

-- How many ms until a queue has something due that has nothing due now, -1 for never.
function M.away(ctx)
  local name, when = next_due(ctx)
  return name and when - ctx.now or -1
end

return M
