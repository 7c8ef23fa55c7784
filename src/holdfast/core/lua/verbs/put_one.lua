-- put_one: one job comes into a queue, by itself.
local record = require("base.record")
local refuse = require("base.refuse")
local allowance = require("nouns.allowance")
local circle = require("nouns.circle")
local extra = require("nouns.extra")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local options = require("nouns.options")
local placement = require("nouns.placement")
local queues = require("nouns.queue")
local report = require("nouns.report")
local state = require("nouns.state")
local tag = require("nouns.tag")
local ties = require("nouns.ties")
local M = {}

local NOTHING = {}
local TAGGED, BUDGETED = record.FLAG.TAGGED, record.FLAG.BUDGETED
local RETRIES = 5 -- where nobody says otherwise
M.MOVES = { move = true, old = true } -- modes in which a job that exists begins a new life
local MOVES = M.MOVES

-- How many losses a job may have that brings its own retries, false for those that pay with a
-- retry; nil: as before.
local function losses_of(to)
  if to.losses or not to.retries then return to.losses end
  return false
end

-- What was wished for the job. `wish` (nil: nothing) says tags (nil: none if this is a put; as
-- before, but given anew, if `to.alone`), throttles (nil: none), depends (nil or empty: as before), and what
-- `options` keeps.
local function dress(at, to, jid, r, wish)
  if wish then r.fields = {} end
  if at.throttles.assign then at.throttles.assign(at, to.queue, jid, r, wish and wish.throttles) end
  if wish or to.losses or record.has(r.flags, record.FLAG.OPTIONS) then
    options.set(at, jid, r, wish or NOTHING, losses_of(to))
  end
  local tags = wish and wish.tags
  if not tags and record.has(r.flags, TAGGED) then tags = to.alone and tag.of(at, jid, r) or to.is_put and NOTHING end
  if tags then tag.set(at, jid, r, tags) end
  if not wish then return end
  extra.flush(at, jid, r)
  if wish.depends and wish.depends[1] then ties.replace(at, jid, r, wish.depends) end
end

-- A job that is new, or begins a new life, goes where it belongs. Writes the record.
local function settle_in(at, to, jid, r)
  placement.settle(at, to, jid, r)
  if at.events.tracked then at.events.tracked(at, "put", jid, r) end
end

-- Says that a job is put, where that is told. Returns the flags of a fresh one.
local function tell(at, to, jid)
  if at.events.put then at.events.put(at, jid, to.queue.name) end
  return at.events.flags(at, jid)
end

-- A fresh job of its own: a long body, a full queue, or a batch with a known jid.
local function put_fresh(at, to, jid, klass, body, wish)
  local retries = to.retries or RETRIES
  local r = {
    state = state.WAITING, flags = tell(at, to, jid), priority = to.priority or 0, attempts = 0, retries = retries,
    remaining = retries, losses = 0, created = at.now, queued = at.now, queue = to.queue.name, klass = klass,
    token = 0, popped = 0, ended = 0, worker = "", body = "", since = 0, place = false,
  }
  if to.losses then r.flags = r.flags + BUDGETED end
  at.record.begin(r, at.now)
  job.set_body(at, jid, r, body)
  dress(at, to, jid, r, wish)
  settle_in(at, to, jid, r)
end

-- A job that exists is moved here: a new life under the same jid.
local function put_again(at, to, jid, klass, body, r, wish)
  tell(at, to, jid)
  if r.state == state.RUNNING and r.worker ~= to.by then at.events.lock_lost(at, jid, r.worker) end
  lease.evict(at, jid, r)
  history.tell(at, jid, r, history.PUT, to.queue.name)
  if at.budgets and to.retries then r.flags = (to.losses and record.with or record.without)(r.flags, BUDGETED) end
  dress(at, to, jid, r, wish)
  r.queue, r.klass, r.priority, r.retries = to.queue.name, klass, to.priority or r.priority, to.retries or r.retries
  r.remaining, r.queued, r.losses = r.retries, at.now, 0
  at.record.begin(r, at.now)
  report.clear(at, jid, r)
  job.set_body(at, jid, r, body)
  settle_in(at, to, jid, r)
end

-- The queue becomes known with its first job. With `to.alone` a job that is new and surely
-- ready takes its sequence number in the same step.
local function enter(at, to, r, wish)
  local now = to.alone and not r and to.delay <= 0 and not (wish and wish.depends)
  to.first, to.idle, to.limited = queues.enter(at, to.queue, now and 1 or 0)
  if not now then to.first = nil end
end

-- One job on its own; `to` says queue, delay, limited, priority, retries and losses (nil: as
-- before), first and idle (of a sequence number that is taken), alone (nobody comes with it), by,
-- a worker that need not be told if it loses the job, `left` for circles, and what
-- `allowance.refusal` asks for. Returns a code, or nil if it was added or moved.
function M.run(at, to, mode, jid, klass, body, wish)
  local r = job.read(at, jid)
  if not r and mode == "old" then return refuse.job("JOB_NOT_FOUND", jid) end
  local wanted = not r or MOVES[mode]
  local refused = wanted and wish and wish.depends and circle.refusal(at, to, jid, r, wish.depends)
  if refused then return refused end
  -- After all that may be refused, but for a queue that holds as many jobs as it may.
  if wanted and to.limited == nil then enter(at, to, r, wish) end
  refused = wanted and to.is_put and to.limited and allowance.refusal(to, jid, r)
  if refused and to.first then queues.give_back(to.queue, 1) end
  if refused then return refused end
  if not r then return put_fresh(at, to, jid, klass, body, wish) end
  if MOVES[mode] then return put_again(at, to, jid, klass, body, r, wish) end
  if mode == "only" and (r.klass ~= klass or job.body(at, jid, r) ~= body) then
    return refuse.job("JOB_EXISTS", jid)
  end
  return "again"
end

return M
