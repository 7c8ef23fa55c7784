-- held_job: the job that somebody says to run, and what such a call begins with.
local arguments = require("doors.protocol.arguments")
local job = require("nouns.job")
local state = require("nouns.state")
local M = {}

-- The record of a job that this worker runs. `idle` and `taken` end the sentences for
-- when it does not, which `who` begins.
function M.job(ctx, jid, worker, who, idle, taken)
  local r, so = job.read(ctx, jid), nil
  if not r then
    so = "does not exist"
  elseif r.state ~= state.RUNNING then
    so = idle .. state.NAME[r.state]
  elseif r.worker ~= worker then
    so = taken .. " another worker: " .. r.worker
  end
  if so then arguments.refuse(arguments.of_job(ctx, who, jid) .. so) end
  return r
end

-- jid worker queue data, with which a completion begins.
function M.completing(args)
  return arguments.text(args, 3, arguments.NO_JID), arguments.text(args, 4, 'Complete(): Arg "worker" missing'),
    arguments.text(args, 5, 'Complete(): Arg "queue_name" missing'),
    arguments.data(args, 6, 'Complete(): Arg "data" missing or not JSON')
end

-- The record of a job that may be completed so.
function M.to_complete(ctx, jid, worker, queue)
  local r = M.job(ctx, jid, worker, "Complete", "is not currently running: ", "has been handed out to")
  if r.queue ~= queue then
    arguments.refuse(arguments.of_job(ctx, "Complete", jid) .. "running in another queue: " .. r.queue)
  end
  return r
end

return M
