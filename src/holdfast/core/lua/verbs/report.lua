-- report: the holder of a lease says how far it is, and what it logged.
local refuse = require("base.refuse")
local job = require("nouns.job")
local lease = require("nouns.lease")
local report = require("nouns.report")
local M = {}

-- `progress` is a fraction as text, "" to leave it and its note as they are; lines to log
-- are in args[first …]. Returns 1.
function M.run(at, worker, jid, token, progress, note, args, first)
  local r, refused, other = lease.held(at, worker, jid, token)
  if not r then refuse.for_all(other and refused or refuse.job("LEASE_LOST", jid .. " is gone")) end
  if progress ~= "" then report.progress(at, jid, r, progress, note) end
  if args[first] then report.lines(at, jid, r, args, first) end
  job.write(at, jid, r)
  return 1
end

return M
