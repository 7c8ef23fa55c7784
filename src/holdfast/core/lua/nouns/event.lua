-- event: hints for whoever listens. A message to nobody costs a third of a microsecond.
local late = require("base.late")
local M = {}

local call, encode
late.bind(function() call, encode = redis.call, cjson.encode end)

M.native = {}

local function to_worker(at, event, jid, worker)
  call("PUBLISH", at.keys.worker_news .. worker,
    '{"jid":' .. encode(jid) .. ',"event":"' .. event .. '","worker":' .. encode(worker) .. "}")
end

-- The holder of a lease is told that it lost it.
function M.native.lock_lost(at, jid, _, worker) to_worker(at, "lock_lost", jid, worker) end

-- The holder of a lease is told that the job is gone.
function M.native.canceled(at, jid, _, worker) to_worker(at, "canceled", jid, worker) end

-- Whoever waits for the outcome of the job hears that there is one.
function M.native.ended(at, jid) call("PUBLISH", at.keys.result_news .. jid, jid) end

return M
