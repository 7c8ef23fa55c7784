-- worker: who was seen when, and what each holds. For roots whose protocol lists
-- workers; elsewhere the leases of the queues say it.
local late = require("base.late")
local M = {}

local call
late.bind(function() call = redis.call end)

function M.seen(at, worker) call("ZADD", at.keys.workers, at.now, worker) end

function M.hold(at, worker, jid, ends) call("ZADD", at.keys.held .. worker, ends, jid) end

function M.drop(at, worker, jid) call("ZREM", at.keys.held .. worker, jid) end

return M
