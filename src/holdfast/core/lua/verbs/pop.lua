-- pop: jobs are leased to a worker.
--
-- Per queue: what came due is moved, leases that were lost are handed out again
-- before anything that waits, then the ready ones in order. A worker that is
-- going to wait raises the idle bit; one that was woken passes the bell on while
-- there is work.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local queues = require("nouns.queue")
local state = require("nouns.state")
local stats = require("nouns.stats")
local timer = require("nouns.timer")
local M = {}

M.WILL_WAIT, M.WOKEN = 1, 2
local FLAG = record.FLAG
local has = record.has

local call, pack, unpack_, rep, format
late.bind(function()
  call, pack, unpack_, rep, format = redis.call, struct.pack, unpack, string.rep, string.format
end)

-- Argument lists that every call fills anew from the front: no call reads beyond
-- what it wrote itself.
local names, sets, leases, waits = {}, {}, {}, {}

-- Appends the row of a job that is leased until `ends`.
function M.row(at, out, jid, r, ends, length)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, at.record.facts(r, ends, length), job.body(at, jid, r), ""
end

-- Turns a ready or lost job that is off the usual path into a running one.
-- Appends its row; returns the new record and the time its wait is counted from.
local function take(at, give, jid, r, sequence)
  local now, since, token = at.now, at.record.since(r), r.token + 1
  if token < now then token = now end
  r.state, r.attempts, r.token, r.popped, r.ended = state.RUNNING, r.attempts + 1, token, now, sequence
  r.worker = give.worker
  local flags = record.without(r.flags, FLAG.NOTICED)
  if give.limited then flags = record.with(flags, FLAG.THROTTLED) end
  r.flags = flags
  if has(flags, FLAG.TOLD) then history.note(at, jid, r, history.POPPED, r.queue) end
  M.row(at, give.out, jid, r, give.ends, give.length)
  return at.record.write(r), since
end

-- Makes one ready job a running one and appends its row. Returns the new record
-- and the time its wait is counted from; nil if there is no such job.
local function grant(at, give, jid, score, bytes)
  if not bytes then return nil end
  if not give.limited then
    local new, facts, body, since = at.record.grant(bytes, score, at.now, give.worker, give.ends, give.length)
    if new then
      local out = give.out
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, facts, body, ""
      return new, since
    end
  end
  local r = at.record.read(bytes)
  if not state.is_ready(r) then return nil end
  return take(at, give, jid, r, at.order.sequence(score, r.priority))
end

local function grant_one(at, queue, give, jid, score)
  local key = at.keys.job .. jid
  local new, since = grant(at, give, jid, score, call("GET", key))
  if not new then return 0 end
  call("SET", key, new)
  call("ZADD", queue.leases, give.ends, jid)
  stats.waited(at, queue, pack("<d", at.now - since))
  return 1
end

-- Writes the first `n` grants of the argument lists.
local function flush(at, queue, n)
  if n == 0 then return end
  call("MSET", unpack_(sets, 1, 2 * n))
  call("ZADD", queue.leases, unpack_(leases, 1, 2 * n))
  stats.waited(at, queue, pack(rep("d", n), unpack_(waits, 1, n)))
end

-- The ready jobs among `ready` (member, score ...). What would make the reply too
-- long goes back to its old place.
local function grant_many(at, queue, give, ready)
  local prefix, jid_of, out, now = at.keys.job, at.order.jid, give.out, at.now
  local count, ends = #ready / 2, format("%.0f", give.ends)
  for i = 1, count do names[i] = prefix .. jid_of(ready[2 * i - 1]) end
  local found, n, size, most = call("MGET", unpack_(names, 1, count)), 0, 0, at.bounds.reply
  for i = 1, count do
    if size > most then
      call("ZADD", queue.waiting, ready[2 * i], ready[2 * i - 1])
    else
      local jid = jid_of(ready[2 * i - 1])
      local new, since = grant(at, give, jid, ready[2 * i], found[i])
      if new then
        n = n + 1
        sets[2 * n - 1], sets[2 * n] = names[i], new
        leases[2 * n - 1], leases[2 * n] = ends, jid
        waits[n] = now - since
        size = size + #out[#out - 1]
      end
    end
  end
  flush(at, queue, n)
  return n
end

-- Jobs whose lease was lost go first, whatever their priority.
local function grant_lost(at, queue, give, want)
  local jids, records = lease.collect_lost(at, queue, at.bounds.lost, want)
  for i = 1, #jids do
    local new, since = take(at, give, jids[i], records[i], records[i].ended)
    sets[2 * i - 1], sets[2 * i] = at.keys.job .. jids[i], new
    leases[2 * i - 1], leases[2 * i] = give.ends, jids[i]
    waits[i] = at.now - since
  end
  flush(at, queue, #jids)
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
  if length == 0 then length = heartbeat > 0 and heartbeat or root.heartbeat(at) end
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
