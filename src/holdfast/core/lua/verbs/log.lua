-- log: a user adds a line to a job's history.
local refuse = require("base.refuse")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local M = {}

-- `message` is any name, `data` a JSON object as text, or "".
function M.one(ctx, jid, r, message, data)
  ctx.completed.keep_together(ctx, jid, r)
  history.log(ctx, jid, r, message, data)
  job.write(ctx, jid, r)
end

-- The same, or the refusal. Returns 1.
function M.run(ctx, jid, message, data)
  local r = job.read(ctx, jid)
  if not r then refuse.call("JOB_NOT_FOUND", jid) end
  M.one(ctx, jid, r, message, data)
  return 1
end

return M
