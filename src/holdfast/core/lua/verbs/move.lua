-- move: a job is taken out of whatever state it is in and starts a new life in a
-- queue. A holder loses its lease; what the job waits for it keeps waiting for.
local keys = require("base.keys")
local refuse = require("base.refuse")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local placement = require("nouns.placement")
local queues = require("nouns.queue")
local report = require("nouns.report")
local state = require("nouns.state")
local M = {}

-- Data and priority may be "": unchanged. `delay` is in ms. Returns the jid.
function M.run(at, name, delay, jid, data, priority)
  local r = job.read(at, jid)
  if not r then refuse.call("JOB_NOT_FOUND", jid) end
  if r.state == state.RUNNING then at.events.lock_lost(at, jid, r.worker) end
  lease.evict(at, jid, r)
  history.tell(at, jid, r, history.PUT, name)
  r.queue, r.queued, r.remaining, r.losses = name, at.now, r.retries, 0
  if priority ~= "" then r.priority = tonumber(priority) end
  at.record.begin(r, at.now)
  report.clear(at, jid, r)
  job.set_body(at, jid, r, data)
  local queue = keys.of_queue(at, name)
  placement.settle(at, { queue = queue, delay = delay, limited = queues.know(at, queue) }, jid, r)
  if at.events.tracked then at.events.tracked(at, "put", jid, r) end
  return jid
end

return M
