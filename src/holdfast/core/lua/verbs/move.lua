-- move: a job is taken out of whatever state it is in and starts a new life in a
-- queue. A holder loses its lease; what is not said stays as it was, and what the job
-- waits for it keeps waiting for.
local keys = require("base.keys")
local refuse = require("base.refuse")
local circle = require("nouns.circle")
local extra = require("nouns.extra")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local placement = require("nouns.placement")
local queues = require("nouns.queue")
local report = require("nouns.report")
local state = require("nouns.state")
local tag = require("nouns.tag")
local ties = require("nouns.ties")
local M = {}

-- Tags, throttles and parents take the place of those there are, where any are wished.
local function dress(at, queue, jid, r, wish)
  r.fields = {}
  if wish.throttles then at.throttles.assign(at, queue, jid, r, wish.throttles) end
  if wish.tags then tag.set(at, jid, r, wish.tags) end
  extra.flush(at, jid, r)
  if wish.depends then ties.replace(at, jid, r, wish.depends) end
end

-- The rest of what changes; "" is as before.
local function write(r, change)
  if change.klass ~= "" then r.klass = change.klass end
  r.retries, r.priority = tonumber(change.retries) or r.retries, tonumber(change.priority) or r.priority
end

-- What changes on the way are data, klass, priority, retries ("": nothing of it), and `wish`
-- (nil, or a table of tags, throttles, depends). `delay` is in ms. Returns the jid.
function M.run(at, name, delay, jid, change)
  local r, wish = job.read(at, jid), change.wish
  if not r then refuse.call("JOB_NOT_FOUND", jid) end
  local refused = wish and wish.depends and circle.refusal(at, {}, jid, r, wish.depends)
  if refused then refuse.for_all(refused) end
  local queue = keys.of_queue(at, name)
  local limited = queues.know(at, queue)
  if r.state == state.RUNNING then at.events.lock_lost(at, jid, r.worker) end
  lease.evict(at, jid, r)
  history.tell(at, jid, r, history.PUT, name)
  if wish then dress(at, queue, jid, r, wish) end
  write(r, change)
  r.queue, r.queued, r.remaining, r.losses = name, at.now, r.retries, 0
  at.record.begin(r, at.now)
  report.clear(at, jid, r)
  job.set_body(at, jid, r, change.data)
  placement.settle(at, { queue = queue, delay = delay, limited = limited }, jid, r)
  if at.events.tracked then at.events.tracked(at, "put", jid, r) end
  return jid
end

return M
