-- put_one: one job comes into a queue, by itself.
local refuse = require("base.refuse")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local queues = require("nouns.queue")
local state = require("nouns.state")
local M = {}

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
