-- log: somebody adds a line of their own to a job's history.
local refuse = require("base.refuse")
local history = require("nouns.history")
local job = require("nouns.job")
local M = {}

-- `message` is any name, `data` a JSON object as text, or "".
function M.one(at, jid, r, message, data)
  at.completed.keep_together(at, jid, r)
  history.log(at, jid, r, message, data)
  job.write(at, jid, r)
end

-- The same, or the refusal. Returns 1.
function M.run(at, jid, message, data)
  local r = job.read(at, jid)
  if not r then refuse.call("JOB_NOT_FOUND", jid) end
  M.one(at, jid, r, message, data)
  return 1
end

return M
