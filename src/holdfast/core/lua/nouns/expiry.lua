-- expiry: a job that must not start after a moment.
--
-- The moment counts until the job is granted for the first time in a life: flag
-- EXPIRING says that it still does. What has started may be tried again later.
local record = require("base.record")
local failure = require("nouns.failure")
local history = require("nouns.history")
local options = require("nouns.options")
local state = require("nouns.state")
local M = {}

local EXPIRING = record.FLAG.EXPIRING
local MESSAGE = "Nobody started the job in time"

-- Whether it is too late to start a job that carries the flag.
function M.is_over(at, jid, r)
  local moment = options.of(at, jid, r).expires
  return moment ~= nil and moment <= at.now
end

-- A job that waits, and is in no set any more, fails. Writes the record.
function M.fail(at, queue, jid, r)
  local group = "expired-" .. queue.name
  r.flags = record.without(r.flags, EXPIRING)
  if r.state == state.THROTTLED then at.throttles.withdraw(at, queue, jid, r) end -- it was let go: another may
  if at.events.tracked then at.events.tracked(at, "failed", jid, r) end
  if at.events.failed then at.events.failed(at, jid, group, MESSAGE, "") end
  r.worker = "" -- the history must not say that a holder of an earlier life failed it
  failure.add(at, queue, jid, r, history.FAILED, group, MESSAGE, "")
end

return M
