-- pop: jobs are leased to a worker.
--
-- Per queue: what came due is moved, leases that were lost are handed out again
-- before anything that waits, then the ready ones in order. A worker that is
-- going to wait raises the idle bit; one that was woken passes the bell on while
-- there is work.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local queues = require("nouns.queue")
local state = require("nouns.state")
local stats = require("nouns.stats")
local timer = require("nouns.timer")
local M = {}

local FACTS = "<ddhHhhHBddH"
M.WILL_WAIT, M.WOKEN = 1, 2
local FLAG = record.FLAG
local has = record.has

local call, pack, unpack_, concat
late.bind(function() call, pack, unpack_, concat = redis.call, struct.pack, unpack, table.concat end)

-- Appends the row of a job that is leased until `ends`.
function M.row(at, out, jid, r, ends, length)
  local n = #out
  local body = r.body
  if r.flags ~= 0 and has(r.flags, FLAG.SPILLED) then body = job.body(at, jid, r) end
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, r.token, r.klass, r.queue
  out[n + 5] = pack(FACTS, ends, length, r.priority, r.attempts, r.retries, r.remaining, 0, r.losses,
    r.created, r.queued, r.flags)
  out[n + 6], out[n + 7] = body, ""
end

-- Turns a ready or lost job into a running one; returns its wait sample.
local function take(at, give, jid, r, sequence)
  local now = at.now
  local wait = pack("<d", now - at.record.since(r))
  local token = r.token + 1
  if token < now then token = now end
  r.state, r.attempts, r.token, r.popped, r.ended = state.RUNNING, r.attempts + 1, token, now, sequence
  r.worker = give.worker
  local flags = r.flags
  if flags ~= 0 or give.limited then
    flags = record.without(flags, FLAG.NOTICED)
    if give.limited then flags = record.with(flags, FLAG.THROTTLED) end
    r.flags = flags
    if has(flags, FLAG.TOLD) then history.note(at, jid, r, history.POPPED, r.queue) end
  end
  return wait
end

local function grant_one(at, queue, give, jid, score)
  local key = at.keys.job .. jid
  local bytes = call("GET", key)
  local r = bytes and at.record.read(bytes)
  if not r or not state.is_ready(r) then return 0 end
  local wait = take(at, give, jid, r, at.order.sequence(score, r.priority))
  call("SET", key, at.record.write(r))
  call("ZADD", queue.leases, give.ends, jid)
  stats.waited(at, queue, wait)
  M.row(at, give.out, jid, r, give.ends, give.length)
  return 1
end

-- Writes what `take` has changed: `sets` and `leases` are argument lists.
local function grant_flush(at, queue, sets, leases, waits)
  if #waits == 0 then return end
  call("MSET", unpack_(sets))
  call("ZADD", queue.leases, unpack_(leases))
  stats.waited(at, queue, concat(waits))
end

-- The ready jobs among `ready` (member, score …). What would make the reply too
-- long goes back to its old place.
local function grant_many(at, queue, give, ready)
  local prefix, read, jid_of = at.keys.job, at.record.read, at.order.jid
  local write, sequence, out, ends = at.record.write, at.order.sequence, give.out, give.ends
  local names, sets, leases, waits = {}, {}, {}, {}
  for i = 1, #ready, 2 do names[(i + 1) / 2] = prefix .. jid_of(ready[i]) end
  local found, n, size = call("MGET", unpack_(names)), 0, 0
  for i = 1, #found do
    local bytes = found[i]
    local r = bytes and read(bytes)
    if r and size > at.bounds.reply then
      call("ZADD", queue.waiting, ready[2 * i], ready[2 * i - 1])
    elseif r and state.is_ready(r) then
      local jid = jid_of(ready[2 * i - 1])
      n = n + 1
      waits[n] = take(at, give, jid, r, sequence(ready[2 * i], r.priority))
      sets[2 * n - 1], sets[2 * n] = names[i], write(r)
      leases[2 * n - 1], leases[2 * n] = ends, jid
      M.row(at, out, jid, r, ends, give.length)
      size = size + #out[#out - 1]
    end
  end
  grant_flush(at, queue, sets, leases, waits)
  return n
end

-- Jobs whose lease was lost go first, whatever their priority.
local function grant_lost(at, queue, give, want)
  local jids, records = lease.collect_lost(at, queue, at.bounds.lost, want)
  local sets, leases, waits = {}, {}, {}
  for i = 1, #jids do
    local jid, r = jids[i], records[i]
    waits[i] = take(at, give, jid, r, r.ended)
    sets[2 * i - 1], sets[2 * i] = at.keys.job .. jid, at.record.write(r)
    leases[2 * i - 1], leases[2 * i] = give.ends, jid
    M.row(at, give.out, jid, r, give.ends, give.length)
  end
  grant_flush(at, queue, sets, leases, waits)
  return #jids
end

-- Grants what is ready, at most `want`.
local function grant_ready(at, queue, give, want)
  if give.limited then
    local free = give.limit - call("ZCARD", queue.leases)
    if free < want then want = free end
  end
  if want < 1 then return 0 end
  if want == 1 then
    local ready = call("ZPOPMIN", queue.waiting)
    while ready[1] do
      if grant_one(at, queue, give, at.order.jid(ready[1]), ready[2]) == 1 then return 1 end
      ready = call("ZPOPMIN", queue.waiting) -- that one's job was gone
    end
    return 0
  end
  local ready = call("ZPOPMIN", queue.waiting, want)
  if not ready[1] then return 0 end
  return grant_many(at, queue, give, ready)
end

-- Pops from one queue. Returns how many were granted, and the queue's due time.
local function from_queue(at, queue, give, want, mode)
  local due, flags, limit, heartbeat = queues.control(queue)
  if flags % 2 == queues.PAUSED then return 0, 0 end
  local got, now = 0, at.now
  local length = give.lease
  if length == 0 then length = heartbeat > 0 and heartbeat or at.heartbeat end
  give.ends, give.length = now + length, length
  give.limited, give.limit = flags % 4 >= queues.HAS_LIMIT, limit
  local reached = due > 0 and due <= now
  if reached and want > 0 then
    timer.promote(at, queue, at.bounds.due)
    got = grant_lost(at, queue, give, want)
  end
  if got < want then got = got + grant_ready(at, queue, give, want - got) end
  if reached then
    due = timer.earliest(queue)
    queues.set_control(queue, due, flags, limit, heartbeat)
  elseif got > 0 and (due == 0 or give.ends < due) then
    due = give.ends
    queues.set_control(queue, due, flags, limit, heartbeat)
  end
  if mode > 0 and got < want then
    queues.raise_idle(queue)
  elseif mode == M.WOKEN then
    queues.raise_idle(queue)
    if call("ZCARD", queue.waiting) > 0 then queues.signal(queue) end
  end
  return got, due
end

-- `give` says worker, lease (ms, 0: the queue's) and out, the list rows are
-- appended to; `args[first … last]` are (queue, mode) pairs, tried in order.
-- Returns how many were granted, and the ms until something is due (-1: never).
function M.run(at, give, want, args, first, last)
  local got, next_due = 0, 0
  for i = first, last, 2 do
    local granted, due = from_queue(at, keys.of_queue(at, args[i]), give, want - got, tonumber(args[i + 1]))
    got = got + granted
    if due > 0 and (next_due == 0 or due < next_due) then next_due = due end
  end
  if next_due == 0 then return got, -1 end
  return got, next_due > at.now and next_due - at.now or 0
end

return M
