-- fail: the holder of a lease reports that the job failed. It is kept, in its failure
-- group, until someone acts.
local batch = require("base.batch")
local ending = require("nouns.job.ending")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local M = {}

-- Fails the job of a lease that is held.
function M.one(ctx, group, message, jid, r, data)
  local queue = lease.release(ctx, jid, r)
  job.set_body(ctx, jid, r, data)
  ending.fail(ctx, queue, jid, r, group, message, r.worker)
end

local function settle(ctx, worker, group, message, jid, token, data)
  local r, refused, other = lease.held(ctx, worker, jid, token)
  if not r then
    if other and history.ending(ctx, jid, other, worker, token) == history.FAILED then return "again" end
    history.refused(ctx, jid, other, worker, token, "fail")
    return refused
  end
  M.one(ctx, group, message, jid, r, data)
end

-- `args[first … last]` are (jid, token, data or ""). Returns how many failed now,
-- then (jid, code) of the others.
function M.run(ctx, worker, group, message, args, first, last)
  return batch.settle(args, first, last, function(jid, token, data)
    return settle(ctx, worker, group, message, jid, token, data)
  end)
end

return M
