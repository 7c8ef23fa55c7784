-- pop: jobs are leased to a worker.
--
-- Per queue: what came due is moved, leases that were lost are handed out again
-- before anything that waits, then the ready ones in order. A worker that is
-- going to wait raises the idle bit; one that was woken wakes another one
-- while there is work, or something soon due that no other worker may be waiting for.
local keys = require("base.keys")
local root = require("base.root")
local admission = require("nouns.job.admission")
local due_time = require("nouns.queue.due")
local grants = require("nouns.lease.grant")
local touched_jobs = require("nouns.job.touched_jobs")
local minutes = require("nouns.queue.minutes")
local queues = require("nouns.queue.queue")
local M = {}

-- How the caller will wait; FOUND: it asked the index which queues to pop from.
M.WILL_WAIT, M.WOKEN, M.FOUND = 1, 2, 3
M.LEVEL = 4 -- what a caller adds to that for each level of what it understands
local DUE_SOON_MS = 5000 -- ms: what is due later is found by an idle worker's next look
local PIECE = 512 -- jobs granted at once
local SPARE = 16 -- jobs looked at beyond those wanted

-- Looks at what is ready, at most `want` jobs. Returns how many it granted, how many
-- it saw, and whether the reply is full, or the call has taken long enough.
local function look(ctx, queue, grant, want)
  local got, seen, full = 0, 0, false
  while seen < want and not full do
    local left = want - seen < PIECE and want - seen or PIECE
    local ready = left == 1 and call("ZPOPMIN", queue.waiting) or call("ZPOPMIN", queue.waiting, left)
    if not ready[1] then break end
    touched_jobs.popped(ready)
    local granted
    if ready[3] then
      granted, full = grants.many(ctx, queue, grant, ready)
    else
      granted = grants.one(ctx, queue, grant, ctx.order.jid(ready[1]), ready[2])
      full = grant.spent >= grant.max_spent
    end
    got, seen = got + granted, seen + #ready / 2
  end
  return got, seen, full
end

-- Grants what is ready, at most `want`. Looks further where jobs were gone or held back,
-- but holds back no more than it may, and none for a reply that is full: `grant.cut`: there may
-- be more behind.
local function grant_ready(ctx, queue, grant, want)
  local got, seen, full = look(ctx, queue, grant, want)
  while got < want and seen > 0 and not full do
    local tries = want + SPARE - got - grant.throttled
    grant.cut = tries < 1
    if grant.cut then break end
    local more
    more, seen, full = look(ctx, queue, grant, want - got < tries and want - got or tries)
    got = got + more
  end
  grant.cut = grant.cut or full
  return got
end

-- Whether a worker that was idle and is busy now must hand on its timer.
local function is_soon(ctx, due) return due < ctx.now + DUE_SOON_MS end

-- Pops from one queue. Returns how many were granted, and the queue's due time.
local function from_queue(ctx, queue, grant, want, mode)
  local left_out = ctx.now >= queue.minute_ends and not minutes.keep(ctx, queue, grant)
  if left_out then want = 0 end
  local due, flags, limit, heartbeat = queues.control(queue)
  local opens
  if flags > 0 then opens, flags = admission.open(ctx, queue, flags) end -- most queues have none
  if opens then
    if ctx.index and mode == M.FOUND then ctx.index.leave_out(ctx, queue, opens) end
    return 0, opens
  end
  if ctx.workers then ctx.workers.seen(ctx, grant.worker) end
  local got, now = 0, ctx.now
  local length = grant.lease
  if length == 0 then length = heartbeat == queues.NEVER and root.heartbeat(ctx) or heartbeat end
  grant.ends, grant.length, grant.limited = now + length, length, flags > 0 and queues.is_limited(flags)
  grant.least, grant.later, grant.throttled, grant.cut = grant.ends, queues.NEVER, 0, false
  local reached, free = due <= now and grant.upkeep >= 1, true
  if reached and want > 0 then got = grants.lost(ctx, queue, grant, want) end
  if got < want then
    local room, left = admission.room(ctx, queue, grant, limit, flags), want - got
    if reached then free = due_time.bring(ctx, queue, grant, left, room) end
    if room then
      got = got + ctx.throttles.grant(ctx, queue, grant, left, room, ctx.throttles.by_round and look or grant_ready)
    else
      got = got + grant_ready(ctx, queue, grant, left)
    end
  end
  local unseen = got < want and (grant.cut or grant.spent >= grant.max_spent) -- the next call looks on
  if reached or unseen then
    due = due_time.note(ctx, queue, free, unseen, flags, limit, heartbeat)
  else
    local least = got > 0 and grant.least or queues.NEVER
    if grant.later < least then least = grant.later end
    if least < due then
      due = least
      queues.set_due(ctx, queue, due, flags, limit, heartbeat)
    end
  end
  if ctx.index and mode == M.FOUND then
    if not left_out then ctx.index.settle(ctx, queue, got < want and not unseen, due) end
  elseif mode > 0 and got < want then
    queues.raise_idle(queue)
  elseif mode == M.WOKEN then
    queues.raise_idle(queue)
    if call("ZCARD", queue.waiting) > 0 or is_soon(ctx, due) then queues.signal(queue) end
  end
  return got, left_out and now or due
end

-- How many ms until then, -1 for never.
local function away(ctx, due)
  if due == queues.NEVER then return -1 end
  return due > ctx.now and due - ctx.now or 0
end

-- The ms until one of these queues has something due, without a pop.
function M.due(ctx, args, first, last)
  local next_due = queues.NEVER
  for i = first, last, 2 do
    local queue = keys.of_queue(ctx, args[i])
    local due, flags = queues.control(queue)
    due = admission.opens(queue, flags) or due
    if due < next_due then next_due = due end
  end
  return away(ctx, next_due)
end

-- `grant` is new (see `nouns.lease.grant`); `args[first … last]` are (queue, mode) pairs, tried in order.
-- Returns how many were granted, and the ms until something is due (-1: never).
function M.run(ctx, grant, want, args, first, last)
  local got, next_due, short = 0, queues.NEVER, nil
  grant.spent, grant.max_spent = 0, ctx.bounds.skipped
  grant.upkeep, grant.granted = ctx.bounds.upkeep, root.granted(ctx)
  for i = first, last, 2 do
    local queue, mode = keys.of_queue(ctx, args[i]), tonumber(args[i + 1])
    if mode > M.FOUND then grant.level, mode = floor(mode / M.LEVEL), mode % M.LEVEL end
    if mode == M.FOUND and got >= want then break end
    local granted, due = from_queue(ctx, queue, grant, want - got, mode)
    got = got + granted
    if due < next_due then next_due = due end
    if got < want and mode == M.WOKEN and is_soon(ctx, due) then
      short = short or {}
      short[#short + 1] = queue
    end
  end
  -- Nothing was ready there, and a later queue made the worker busy.
  if short and got >= want then
    for i = 1, #short do queues.signal(short[i]) end
  end
  return got, away(ctx, next_due)
end

return M
