-- put_one: one job comes into a queue, by itself.
local refuse = require("base.refuse")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local queues = require("nouns.queue")
local state = require("nouns.state")
local M = {}

local RETRIES = 5 -- where nobody says otherwise

-- A job that is new, or begins a new life, goes where it belongs. Writes the record.
local function settle_in(at, to, jid, r)
  local full = to.delay <= 0 and at.throttles.is_full(at, to.queue, jid, r, to.limited)
  if full then
    at.throttles.park(at, to.queue, jid, r, full)
  else
    job.place(at, to.queue, jid, r, to.delay, to.first, to.idle)
  end
  job.write(at, jid, r)
  if at.events.tracked then at.events.tracked(at, "put", jid, r) end
end

-- Says that a job is put, where that is told. Returns the flags of a fresh one.
local function tell(at, to, jid)
  if not at.events.put then return 0 end
  at.events.put(at, jid, to.queue.name)
  return at.events.flags(at, jid)
end

-- A fresh job of its own: a long body, a full queue, or a batch with a known jid.
local function put_fresh(at, to, jid, klass, body)
  local retries = to.retries or RETRIES
  local r = {
    state = state.DEPENDS, flags = tell(at, to, jid), priority = to.priority or 0, attempts = 0, retries = retries,
    remaining = retries, losses = 0, created = at.now, queued = at.now, queue = to.queue.name, klass = klass,
    token = 0, popped = 0, ended = 0, worker = "", body = "",
  }
  at.record.begin(r, at.now)
  job.set_body(at, jid, r, body)
  if at.throttles.assign then at.throttles.assign(at, to.queue, jid, r, to.throttles) end
  settle_in(at, to, jid, r)
end

-- A job that exists is moved here: a new life under the same jid.
local function put_again(at, to, jid, klass, body, r)
  tell(at, to, jid)
  if r.state == state.RUNNING and r.worker ~= to.by then at.events.lock_lost(at, jid, r.worker) end
  lease.evict(at, jid, r)
  history.tell(at, jid, r, history.PUT, to.queue.name)
  if at.throttles.assign then at.throttles.assign(at, to.queue, jid, r, to.throttles) end
  r.queue, r.klass, r.priority, r.retries = to.queue.name, klass, to.priority or r.priority, to.retries or r.retries
  r.remaining, r.queued, r.losses = r.retries, at.now, 0
  at.record.begin(r, at.now)
  job.set_body(at, jid, r, body)
  settle_in(at, to, jid, r)
end

-- One job on its own; `to` says queue, delay, limited, priority and retries (nil: as
-- before), throttles (nil: none), first and idle (of a sequence number that is taken),
-- and by, a worker that need not be told if it loses
-- the job. Returns a code, or nil if it was added or moved.
function M.run(at, to, mode, jid, klass, body)
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

return M
