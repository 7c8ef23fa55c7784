-- held: the job that somebody says to run, and what such a call begins with.
local words = require("doors.protocol.words")
local job = require("nouns.job")
local state = require("nouns.state")
local M = {}

-- The record of a job that this worker runs. `idle` and `taken` end the sentences for
-- when it does not, which `who` begins.
function M.job(at, jid, worker, who, idle, taken)
  local r, so = job.read(at, jid), nil
  if not r then
    so = "does not exist"
  elseif r.state ~= state.RUNNING then
    so = idle .. state.NAME[r.state]
  elseif r.worker ~= worker then
    so = taken .. " another worker: " .. r.worker
  end
  if so then words.refuse(words.of_job(at, who, jid) .. so) end
  return r
end

-- jid worker queue data, with which a completion begins.
function M.completing(args)
  return words.text(args, 3, words.NO_JID), words.text(args, 4, 'Complete(): Arg "worker" missing'),
    words.text(args, 5, 'Complete(): Arg "queue_name" missing'),
    words.data(args, 6, 'Complete(): Arg "data" missing or not JSON')
end

-- The record of a job that may be completed so.
function M.to_complete(at, jid, worker, queue)
  local r = M.job(at, jid, worker, "Complete", "is not currently running: ", "has been handed out to")
  if r.queue ~= queue then
    words.refuse(words.of_job(at, "Complete", jid) .. "running in another queue: " .. r.queue)
  end
  return r
end

return M
