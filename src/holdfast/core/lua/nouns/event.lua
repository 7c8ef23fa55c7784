-- event: hints for whoever listens. A message to nobody costs a third of a microsecond.
--
-- `at.events` is this or `event_log`; a name that this one lacks is not told here.
local late = require("base.late")
local M = {}

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

-- Something changed that a page may show: `queues`, `queue:<name>`, `failed`,
-- `job:<jid>`, `worker:<name>` and the like. Told once a call, and only while
-- somebody watches.
function M.changed(at, name)
  if at.watched then at.watched[name] = true end
end

function M.tell_changes(at)
  for name in pairs(at.watched) do call("PUBLISH", at.keys.changes, name) end
end

-- Whoever waits for the outcome of the job hears that there is one.
function M.ended(at, jid) call("PUBLISH", at.keys.result_news .. jid, jid) end

return M
