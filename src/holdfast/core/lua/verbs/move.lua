-- move: a job is taken out of whatever state it is in and starts a new life in a
-- queue. A holder loses its lease.
local keys = require("base.keys")
local refuse = require("base.refuse")
local event = require("nouns.event")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local M = {}

-- Data and priority may be "": unchanged. `delay` is in ms. Returns the jid.
function M.run(at, name, delay, jid, data, priority)
  local r = job.read(at, jid)
  if not r then refuse.call("JOB_NOT_FOUND", jid) end
  lease.evict(at, jid, r, event.native.lock_lost)
  history.tell(at, jid, r, history.PUT, name)
  r.queue, r.queued, r.remaining, r.losses = name, at.now, r.retries, 0
  if priority ~= "" then r.priority = tonumber(priority) end
  job.set_body(at, jid, r, data)
  job.place(at, keys.of_queue(at, name), jid, r, delay)
  job.write(at, jid, r)
  return jid
end

return M
