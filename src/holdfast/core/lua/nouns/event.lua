-- event: hints for whoever listens. A message to nobody costs a third of a microsecond.
--
-- `at.events` is this or `event_log`; a name that this one lacks is not told here.
local late = require("base.late")
local record = require("base.record")
local root = require("base.root")
local M = {}

local TRACKED, MARKED = record.FLAG.TRACKED, root.MARKED
local has = record.has

local call, encode
late.bind(function() call, encode = redis.call, cjson.encode end)

local function to_worker(at, event, jid, worker)
  call("PUBLISH", at.keys.worker_news .. worker,
    '{"jid":' .. encode(jid) .. ',"event":"' .. event .. '","worker":' .. encode(worker) .. "}")
end

-- The holder of a lease is told that it lost it.
function M.lock_lost(at, jid, worker) to_worker(at, "lock_lost", jid, worker) end

-- The holder of a lease, if there is one (worker ~= ""), is told that the job is gone.
function M.canceled(at, jid, _, worker)
  if worker ~= "" then to_worker(at, "canceled", jid, worker) end
end

-- A worker is told to take no more jobs, or to take jobs again.
function M.quiet(at, worker, on)
  call("PUBLISH", at.keys.worker_news .. worker,
    '{"event":"' .. (on and "quiet" or "resume") .. '","worker":' .. encode(worker) .. "}")
end

-- A worker is asked where its job is just now; `question` names the answer. Returns how
-- many heard that on this node.
function M.asked(at, worker, jid, question)
  return call("PUBLISH", at.keys.worker_news .. worker, '{"event":"stack","jid":' .. encode(jid) .. ',"question":'
    .. encode(question) .. ',"worker":' .. encode(worker) .. "}")
end

-- Whoever asked is answered. Returns how many heard that on this node.
function M.answered(at, question, answer) return call("PUBLISH", at.keys.answers .. question, answer) end

-- The flags of a fresh job: somebody may have tracked an earlier one of that name. A root
-- without tracked jobs is not asked.
function M.flags(at, jid)
  if at.flags % (MARKED + MARKED) < MARKED then return 0 end
  return call("ZSCORE", at.keys.marks, jid) and TRACKED or 0
end

-- The jid itself, on a channel of its own, if somebody tracks the job.
function M.tracked(at, what, jid, r)
  if has(r.flags, TRACKED) then call("PUBLISH", at.keys.news .. what, jid) end
end

-- A retry used up the last try. (The other form says nothing there.)
function M.exhausted(at, jid, r) M.tracked(at, "failed", jid, r) end

function M.marked(at, what, jid) call("PUBLISH", at.keys.news .. what, jid) end

-- Something changed that a page may show: `queues`, `queue:<name>`, `failed`,
-- `job:<jid>`, `worker:<name>` and the like. Told once a call, and only while
-- somebody watches.
function M.changed(at, name)
  if at.watched then at.watched[name] = true end
end

-- The same for a job and its queue.
function M.changed_job(at, jid, queue)
  M.changed(at, "job:" .. jid)
  M.changed(at, "queue:" .. queue)
end

function M.tell_changes(at)
  for name in pairs(at.watched) do call("PUBLISH", at.keys.changes, name) end
end

-- Whoever waits for the outcome of the job hears that there is one.
function M.ended(at, jid) call("PUBLISH", at.keys.result_news .. jid, jid) end

return M
