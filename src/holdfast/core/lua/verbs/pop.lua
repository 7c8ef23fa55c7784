-- pop: jobs are leased to a worker.
--
-- Per queue: what came due is moved, leases that were lost are handed out again
-- before anything that waits, then the ready ones in order. A worker that is
-- going to wait raises the idle bit; one that was woken passes the bell on while
-- there is work, or something soon due that nobody else may be waiting for.
local late = require("base.late")
local keys = require("base.keys")
local root = require("base.root")
local due_time = require("nouns.due")
local grant = require("nouns.grant")
local in_hand = require("nouns.in_hand")
local minutes = require("nouns.minutes")
local pausing = require("nouns.pausing")
local queues = require("nouns.queue")
local M = {}

-- How the caller will wait; FOUND: it asked the index which queues to pop from.
M.WILL_WAIT, M.WOKEN, M.FOUND = 1, 2, 3
local SOON = 5000 -- ms: what is due later is learnt by an idle worker's next look
local PIECE = 512 -- jobs granted at once
local SPARE = 16 -- jobs looked at beyond those wanted

local call
late.bind(function() call = redis.call end)

-- Looks at what is ready, at most `want` jobs. Returns how many it granted, how many
-- it saw, and whether the reply is full, or the call has taken long enough.
local function look(at, queue, give, want)
  local got, seen, full = 0, 0, false
  while seen < want and not full do
    local left = want - seen < PIECE and want - seen or PIECE
    local ready = left == 1 and call("ZPOPMIN", queue.waiting) or call("ZPOPMIN", queue.waiting, left)
    if not ready[1] then break end
    in_hand.popped(ready)
    local granted
    if ready[3] then
      granted, full = grant.many(at, queue, give, ready)
    else
      granted = grant.one(at, queue, give, at.order.jid(ready[1]), ready[2])
      full = give.spent >= give.patience
    end
    got, seen = got + granted, seen + #ready / 2
  end
  return got, seen, full
end

-- Grants what is ready, at most `want`. Looks further where jobs were gone or set aside,
-- but sets no more aside than it may, nor into a reply that is full: `give.cut` says that
-- there may be more behind.
local function grant_ready(at, queue, give, want)
  local got, seen, full = look(at, queue, give, want)
  while got < want and seen > 0 and not full do
    local tries = want + SPARE - got - give.aside
    give.cut = tries < 1
    if give.cut then break end
    local more
    more, seen, full = look(at, queue, give, want - got < tries and want - got or tries)
    got = got + more
  end
  give.cut = give.cut or full
  return got
end

-- Whether a worker that was idle and is busy now must hand on its timer.
local function is_soon(at, due) return due < at.now + SOON end

-- Pops from one queue. Returns how many were granted, and the queue's due time.
local function from_queue(at, queue, give, want, mode)
  local left_out = at.now >= queue.minute_ends and not minutes.keep(at, queue, give)
  if left_out then want = 0 end
  local due, flags, limit, heartbeat = queues.control(queue)
  if flags % 2 == queues.PAUSED then
    local ends = pausing.ends(queue)
    if ends > at.now then
      if at.index and mode == M.FOUND then at.index.leave_out(at, queue, ends) end
      return 0, ends
    end
    flags = pausing.over(at, queue, flags)
  end
  if at.workers then at.workers.seen(at, give.worker) end
  local got, now = 0, at.now
  local length = give.lease
  if length == 0 then length = heartbeat == queues.NEVER and root.heartbeat(at) or heartbeat end
  give.ends, give.length, give.limited = now + length, length, flags % 4 >= queues.HAS_LIMIT
  give.least, give.aside, give.cut = give.ends, 0, false
  local reached, free = due <= now and give.chores >= 1, true
  if reached and want > 0 then got = grant.lost(at, queue, give, want) end
  if got < want then
    local room, left = at.throttles.room(at, queue, give, limit, flags), want - got
    if reached then free = due_time.bring(at, queue, give, left, room) end
    if room then
      got = got + at.throttles.grant(at, queue, give, left, room, at.throttles.by_round and look or grant_ready)
    else
      got = got + grant_ready(at, queue, give, left)
    end
  end
  local unseen = got < want and (give.cut or give.spent >= give.patience) -- the next call looks on
  if reached or unseen then
    due = due_time.note(at, queue, free, unseen, flags, limit, heartbeat)
  elseif got > 0 and give.least < due then
    due = give.least
    queues.set_due(at, queue, due, flags, limit, heartbeat)
  end
  if at.index and mode == M.FOUND then
    if not left_out then at.index.settle(at, queue, got < want and not unseen, due) end
  elseif mode > 0 and got < want then
    queues.raise_idle(queue)
  elseif mode == M.WOKEN then
    queues.raise_idle(queue)
    if call("ZCARD", queue.waiting) > 0 or is_soon(at, due) then queues.signal(queue) end
  end
  return got, left_out and now or due
end

-- How many ms until then, -1 for never.
local function away(at, due)
  if due == queues.NEVER then return -1 end
  return due > at.now and due - at.now or 0
end

-- The ms until one of these queues has something due, without a pop.
function M.due(at, args, first, last)
  local next_due = queues.NEVER
  for i = first, last, 2 do
    local queue = keys.of_queue(at, args[i])
    local due, flags = queues.control(queue)
    if flags % 2 == queues.PAUSED then due = pausing.ends(queue) end
    if due < next_due then next_due = due end
  end
  return away(at, next_due)
end

-- `give` says worker, lease (ms, 0: the queue's) and out, the list rows are
-- appended to; `args[first … last]` are (queue, mode) pairs, tried in order.
-- Returns how many were granted, and the ms until something is due (-1: never).
function M.run(at, give, want, args, first, last)
  local got, next_due, short = 0, queues.NEVER, nil
  give.spent, give.patience, give.chores, give.granted = 0, at.bounds.odd, at.bounds.chores, root.granted(at)
  for i = first, last, 2 do
    local queue, mode = keys.of_queue(at, args[i]), tonumber(args[i + 1])
    if mode == M.FOUND and got >= want then break end
    local granted, due = from_queue(at, queue, give, want - got, mode)
    got = got + granted
    if due < next_due then next_due = due end
    if got < want and mode == M.WOKEN and is_soon(at, due) then
      short = short or {}
      short[#short + 1] = queue
    end
  end
  -- Nothing was ready there, and a later queue made the worker busy.
  if short and got >= want then
    for i = 1, #short do queues.signal(short[i]) end
  end
  return got, away(at, next_due)
end

return M
