-- expiry: a job that must not start after a moment.
--
-- The moment counts until the job is granted for the first time in a life: flag
-- EXPIRING is up while it does. What has started may be tried again later.
local record = require("base.record")
local ending = require("nouns.job.ending")
local options = require("nouns.job.options")
local state = require("nouns.job.state")
local M = {}

local EXPIRING = record.FLAG.EXPIRING
local MESSAGE = "The job was not started in time"

-- Whether it is too late to start a job that carries the flag.
function M.is_over(ctx, jid, r)
  local moment = options.of(ctx, jid, r).expires
  return moment ~= nil and moment <= ctx.now
end

-- A job that waits, and is in no set any more, fails. Writes the record.
function M.fail(ctx, queue, jid, r)
  r.flags = record.without(r.flags, EXPIRING)
  if r.state == state.THROTTLED then ctx.throttles.remove(ctx, queue, jid, r) end -- it was let go: another may
  ending.fail_unreported(ctx, queue, jid, r, "expired-" .. queue.name, MESSAGE, "")
end

return M
