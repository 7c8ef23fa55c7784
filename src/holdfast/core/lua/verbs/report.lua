-- report: the holder of a lease reports its progress, and what it logged.
local refuse = require("base.refuse")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local report = require("nouns.lease.report")
local M = {}

-- `progress` is a fraction as text, "" to leave it and its note as they are; lines to log
-- are in args[first …]. Returns 1.
function M.run(ctx, worker, jid, token, progress, note, args, first)
  local r, refused, other = lease.held(ctx, worker, jid, token)
  if not r then refuse.for_all(other and refused or refuse.job("LEASE_LOST", jid .. " is gone")) end
  if progress ~= "" then report.progress(ctx, jid, r, progress, note) end
  if args[first] then report.lines(ctx, jid, r, args, first) end
  job.write(ctx, jid, r)
  return 1
end

return M
