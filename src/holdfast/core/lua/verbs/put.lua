-- put: jobs come into a queue.
--
-- Modes: `new` (the jid was minted by the caller: a job that exists is this very
-- put, sent again), `move` (a job that exists is moved here and starts a new life),
-- `only` (a job that exists is left alone: `again` if klass and data are the same).
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local refuse = require("base.refuse")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local queues = require("nouns.queue")
local state = require("nouns.state")
local M = {}

local SPILL = record.SPILL

local call, unpack_
late.bind(function() call, unpack_ = redis.call, unpack end)

-- A job that is new, or begins a new life, goes where it belongs. Writes the record.
local function settle_in(at, to, jid, r)
  local full = to.delay <= 0 and at.throttles.is_full(at, to.queue, jid, r, to.limited)
  if full then
    at.throttles.park(at, to.queue, jid, r, full)
  else
    job.place(at, to.queue, jid, r, to.delay)
  end
  job.write(at, jid, r)
end

-- A fresh job of its own: a long body, a full queue, or a batch with a known jid.
local function put_fresh(at, to, jid, klass, body)
  local r = {
    state = state.DEPENDS, flags = 0, priority = to.priority, attempts = 0, retries = to.retries,
    remaining = to.retries, losses = 0, created = at.now, queued = at.now, queue = to.queue.name, klass = klass,
    token = 0, popped = 0, ended = 0, worker = "", body = "",
  }
  at.record.begin(r, at.now)
  job.set_body(at, jid, r, body)
  if to.prepare then to.prepare(at, to, jid, r) end
  settle_in(at, to, jid, r)
end

-- A job that exists is moved here: a new life under the same jid.
local function put_again(at, to, jid, klass, body, r)
  if r.state == state.RUNNING and r.worker ~= to.by then at.events.lock_lost(at, jid, r.worker) end
  lease.evict(at, jid, r)
  history.tell(at, jid, r, history.PUT, to.queue.name)
  if to.prepare then to.prepare(at, to, jid, r) end
  r.queue, r.klass, r.priority, r.retries, r.remaining = to.queue.name, klass, to.priority, to.retries, to.retries
  r.queued, r.losses = at.now, 0
  at.record.begin(r, at.now)
  job.set_body(at, jid, r, body)
  settle_in(at, to, jid, r)
end

-- One job on its own; `to` says queue, priority, retries, delay, limited, by (a
-- worker that is not told if it loses the job) and prepare (called before the job is
-- placed, with its old record). Returns a code, or nil if it was added or moved.
function M.one(at, to, mode, jid, klass, body)
  local r = job.read(at, jid)
  if not r then
    if mode == "only" then to.limited = queues.know(at, to.queue) end
    return put_fresh(at, to, jid, klass, body)
  end
  if mode == "move" then return put_again(at, to, jid, klass, body, r) end
  if mode == "only" and (r.klass ~= klass or job.body(at, jid, r) ~= body) then
    return refuse.job("JOB_EXISTS", jid)
  end
  return "again"
end

local function one_by_one(at, to, mode, args, first, last)
  local reply, added = { 0 }, 0
  for i = first, last, 3 do
    local code = M.one(at, to, mode, args[i], args[i + 1], args[i + 2])
    if code then
      reply[#reply + 1], reply[#reply + 2] = (i - first) / 3, code
    else
      added = added + 1
    end
  end
  reply[1] = added
  return reply
end

-- The straight way for one short job. Nil if its jid is known.
local function add_single(at, queue, head, priority, position, jid, klass, body)
  if call("SETNX", at.keys.job .. jid, at.record.with_klass(head, klass) .. body) == 0 then return nil end
  call("ZADD", queue.waiting, at.order.entry(position, priority, at.now, jid))
  return { 1 }
end

-- Argument lists that every call fills anew from the front.
local sets, entries = {}, {}

-- A jid came twice in a batch: writes the first ones once more, names the others.
local function add_first(at, queue, args, first, last)
  local reply, seen = { 0 }, {}
  for i = first, last, 3 do
    local jid, n = args[i], 2 * (i - first) / 3
    if seen[jid] then
      reply[#reply + 1], reply[#reply + 2] = n / 2, "again"
    else
      seen[jid], reply[1] = true, reply[1] + 1
      call("SET", sets[n + 1], sets[n + 2])
      call("ZADD", queue.waiting, entries[n + 1], entries[n + 2])
    end
  end
  return reply
end

-- The straight way for many short jobs. Nil if any jid is known, or one body is long.
local function add_many(at, queue, head, priority, position, args, first, last)
  local prefix, with_klass, entry, now, n = at.keys.job, at.record.with_klass, at.order.entry, at.now, 0
  local klass, start
  for i = first, last, 3 do
    local jid, body = args[i], args[i + 2]
    if #body > SPILL then return nil end
    if args[i + 1] ~= klass then
      klass = args[i + 1]
      start = with_klass(head, klass)
    end
    sets[n + 1], sets[n + 2] = prefix .. jid, start .. body
    position = position + 1
    entries[n + 1], entries[n + 2] = entry(position, priority, now, jid)
    n = n + 2
  end
  if call("MSETNX", unpack_(sets, 1, n)) == 0 then return nil end
  if call("ZADD", queue.waiting, unpack_(entries, 1, n)) == n / 2 then return { n / 2 } end
  return add_first(at, queue, args, first, last)
end

-- `args[first … last]` are (jid, klass, data). Returns how many were added or moved, then (index from 0, code).
function M.run(at, mode, name, priority, retries, delay, args, first, last)
  local queue, limited = keys.of_queue(at, name), nil
  if mode ~= "only" then -- that one may be refused, so it looks before it takes a number
    local count, position, idle = (last - first + 1) / 3, nil, nil
    position, idle, limited = queues.enter(at, queue, count)
    if delay <= 0 and not limited and (count == 1 or mode == "new") then
      local head, added = at.record.fresh(state.WAITING, 0, priority, retries, at.now, name), nil
      if count > 1 then
        added = add_many(at, queue, head, priority, position, args, first, last)
      elseif #args[first + 2] <= SPILL then
        added = add_single(at, queue, head, priority, position + 1, args[first], args[first + 1], args[first + 2])
      end
      if added and idle then queues.signal(queue) end
      if added then return added end
    end
  end
  local to = { queue = queue, priority = priority, retries = retries, delay = delay, limited = limited }
  return one_by_one(at, to, mode, args, first, last)
end

return M
