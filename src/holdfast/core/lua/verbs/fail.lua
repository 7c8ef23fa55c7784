-- fail: the holder of a lease says that the job cannot be done. It is kept, in
-- its failure group, until somebody acts.
local batch = require("base.batch")
local failure = require("nouns.failure")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local M = {}

-- Fails the job of a lease that is held.
function M.one(at, group, message, jid, r, data)
  local worker = r.worker
  if at.events.failed then at.events.failed(at, jid, group, message, worker) end
  if at.events.tracked then at.events.tracked(at, "failed", jid, r) end
  local queue = lease.release(at, jid, r)
  job.set_body(at, jid, r, data)
  failure.add(at, queue, jid, r, history.FAILED, group, message, worker)
end

local function settle(at, worker, group, message, jid, token, data)
  local r, refused, other = lease.held(at, worker, jid, token)
  if not r then
    if other and history.ending(at, jid, other, worker, token) == history.FAILED then return "again" end
    return refused
  end
  M.one(at, group, message, jid, r, data)
end

-- `args[first … last]` are (jid, token, data or ""). Returns how many failed now,
-- then (jid, code) of the others.
function M.run(at, worker, group, message, args, first, last)
  return batch.settle(args, first, last, function(jid, token, data)
    return settle(at, worker, group, message, jid, token, data)
  end)
end

return M
