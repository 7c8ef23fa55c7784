-- throttle_waiting: jobs that a full throttle keeps from running, pending until it lets them go:
-- when a slot is free, when its limit is changed, or when that comes to an end.
--
-- What a call does not do of that is left to later calls: throttles with such upkeep are in the
-- set `U`, by when it is due; root flag UPKEEP is up while there are any.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local definition = require("nouns.throttle.throttle_definition")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local queue_flags = require("nouns.queue.queue_flags")
local queues = require("nouns.queue.queue")
local slots = require("nouns.throttle.throttle_slots")
local state = require("nouns.job.state")
local touched_jobs = require("nouns.job.touched_jobs")
local M = {}

local THROTTLED = record.FLAG.THROTTLED
local NEVER, MARKED, NO_LIMIT = definition.NEVER, definition.MARKED, definition.NO_LIMIT
local PIECE = 512 -- jobs let go at once
local SCANNED = 100 -- leases looked at in one call, when a queue gets a limit

-- Keeps a job from running, pending on the throttle that is full.
function M.hold_back(ctx, queue, jid, r, id)
  touched_jobs.note(jid) -- its record is written last
  if r.state ~= state.THROTTLED then history.add(ctx, jid, r, history.THROTTLED, queue.name) end
  state.move(r, state.THROTTLED)
  local pending = ctx.keys.pending .. id
  call("ZADD", pending, ctx.order.pending(ctx, pending), jid)
  call("ZADD", queue.throttled, ctx.now, jid)
end

-- The same for jobs that are new, whose records are written already.
function M.hold_back_new(ctx, queue, id, jids)
  local pending, ranked, since = ctx.keys.pending .. id, {}, {}
  local rank = ctx.order.pending(ctx, pending)
  for i = 1, #jids do
    ranked[2 * i - 1], ranked[2 * i] = rank + (i - 1) * ctx.order.STEP, jids[i]
    since[2 * i - 1], since[2 * i] = ctx.now, jids[i]
  end
  call("ZADD", pending, unpack_(ranked))
  call("ZADD", queue.throttled, unpack_(since))
end

-- A pending job is put elsewhere or deleted; `ids` are its throttles.
function M.remove(ctx, queue, jid, ids)
  call("ZREM", queue.throttled, jid)
  for i = 1, #ids do call("ZREM", ctx.keys.pending .. ids[i], jid) end
end

-- The first `count` pending jobs become ready; they get the slot when they are popped.
-- Returns how many.
function M.promote(ctx, id, count)
  local promoted = 0
  while count - promoted >= 1 do
    local left = floor(count - promoted < PIECE and count - promoted or PIECE)
    local pending = call("ZPOPMIN", ctx.keys.pending .. id, left)
    if not pending[1] then break end
    touched_jobs.took(ctx.keys.pending .. id, pending)
    for i = 1, #pending, 2 do
      local jid = pending[i]
      local r = job.read(ctx, jid)
      local queue = r and keys.of_queue(ctx, r.queue)
      if r and call("ZREM", queue.throttled, jid) == 1 then
        job.make_ready(ctx, queue, jid, r)
        job.write(ctx, jid, r)
        promoted = promoted + 1
      end
    end
  end
  return promoted
end

-- Lets pending jobs go, as many as slots are free and one call may promote. Returns whether a
-- later call has to continue: what is left otherwise goes when the holders of slots end.
local function fill(ctx, id)
  local pending = call("ZCARD", ctx.keys.pending .. id)
  if pending == 0 then return false end
  local free = slots.free(ctx, id)
  if free < 1 then return false end
  local most = min(free, ctx.bounds.released - ctx.released)
  if most >= 1 then ctx.released = ctx.released + M.promote(ctx, id, most) end
  return pending > most and (free == NO_LIMIT or most < 1)
end

-- Notes when a throttle needs upkeep; NEVER: not again.
local function schedule_upkeep(ctx, id, when)
  if when < NEVER then
    call("ZADD", ctx.keys.upkeep, when, id)
    root.set_flag(ctx, root.UPKEEP, true)
  elseif call("ZREM", ctx.keys.upkeep, id) == 1 and call("EXISTS", ctx.keys.upkeep) == 0 then
    root.set_flag(ctx, root.UPKEEP, false)
  end
end

-- A slot may be free: lets pending jobs go.
function M.offer(ctx, id)
  if fill(ctx, id) then schedule_upkeep(ctx, id, 0) end
end

-- The end of a job that runs has to be noticed.
function M.mark(ctx, jid)
  local r = job.read(ctx, jid)
  if r and r.state == state.RUNNING and not record.has(r.flags, THROTTLED) then
    r.flags = record.with(r.flags, THROTTLED)
    job.write(ctx, jid, r)
  end
end

-- Jobs that ran before their queue had a limit hold slots too. Marks some more of them;
-- returns where to continue, MARKED if nowhere. A scan meets every lease that was there
-- when it began, also one whose end was moved.
local function mark_some(ctx, queue, cursor)
  local found = call("ZSCAN", queue.leases, ("%.0f"):format(cursor), "COUNT", SCANNED)
  for i = 1, #found[2], 2 do M.mark(ctx, found[2][i]) end
  return found[1] == "0" and MARKED or tonumber(found[1])
end

local function unlimit(ctx, queue)
  queue_flags.set_limit(queue, 0)
  queues.wake(ctx, queue)
end

-- The upkeep of a throttle: its limit may have come to an end, pending jobs may be left that it
-- can let go, or running ones that have to be marked.
local function keep_up(ctx, id)
  local limit, queue = definition.read(ctx, id), slots.queue_of(ctx, id)
  local cursor = limit.cursor
  if limit.ends <= ctx.now then
    definition.delete(ctx, id)
    limit.ends, cursor = NEVER, MARKED
    if queue then unlimit(ctx, queue) end
  elseif cursor ~= MARKED then
    cursor = mark_some(ctx, queue, cursor)
    definition.write(ctx, id, limit.maximum, limit.ends, cursor)
    queues.wake(ctx, queue) -- one that is not marked yet may have ended
  end
  local again = fill(ctx, id) or cursor ~= MARKED
  schedule_upkeep(ctx, id, again and 0 or limit.ends)
end

-- Does some of the upkeep that is due.
function M.continue(ctx)
  local id = call("ZRANGE", ctx.keys.upkeep, "-inf", ctx.now, "BYSCORE", "LIMIT", 0, 1)[1]
  if id then keep_up(ctx, id) end
end

-- A new maximum (0: none, nil: unchanged), for `span` ms (0: its end stays unchanged). A higher
-- one lets pending jobs go.
function M.set(ctx, id, maximum, span)
  local was, queue = definition.read(ctx, id), slots.queue_of(ctx, id)
  local ends = span > 0 and ctx.now + span or was.ends > ctx.now and was.ends or NEVER
  maximum = maximum or was.ends > ctx.now and was.maximum or 0
  definition.write(ctx, id, maximum, ends, queue and maximum > 0 and 0 or MARKED)
  if queue then
    queue_flags.set_limit(queue, maximum)
    queues.wake(ctx, queue)
  end
  keep_up(ctx, id)
end

-- No definition, no limit; jobs that hold a slot keep it. Returns 1, or 0 if there was none.
function M.delete(ctx, id)
  local queue, was = slots.queue_of(ctx, id), definition.delete(ctx, id)
  if queue then unlimit(ctx, queue) end
  keep_up(ctx, id)
  return was
end

-- A queue that has no jobs loses its limit; no job waits for a slot.
function M.forget(ctx, queue)
  if definition.delete(ctx, queue.own) == 0 then return end
  queue_flags.set_limit(queue, 0)
  schedule_upkeep(ctx, queue.own, NEVER)
end

-- [maximum, used, pending, ms until the limit ends (-1: it has no end, -2: no limit is defined)]
function M.state(ctx, id)
  local limit = definition.read(ctx, id)
  local pending, used = call("ZCARD", ctx.keys.pending .. id), slots.used(ctx, id)
  if not limit.is_defined or limit.ends <= ctx.now then return { 0, used, pending, -2 } end
  return { limit.maximum, used, pending, limit.ends < NEVER and limit.ends - ctx.now or -1 }
end

return M
