-- expire: a holder is known to be dead, so its leases end now and without grace.
-- The next pop hands the jobs out again, before anything that waits. See `release`, which
-- says more.
local late = require("base.late")
local keys = require("base.keys")
local job = require("nouns.job")
local lease = require("nouns.lease")
local queues = require("nouns.queue")
local record = require("base.record")
local M = {}

local call
late.bind(function() call = redis.call end)

-- `args[first … last]` are (worker, jid, token). Returns how many were given back.
function M.run(at, args, first, last)
  local count = 0
  for i = first, last, 3 do
    local jid = args[i + 1]
    local r = lease.held(at, args[i], jid, tonumber(args[i + 2]))
    if r then
      local queue = keys.of_queue(at, r.queue)
      if not record.has(r.flags, record.FLAG.NOTICED) then lease.notice(at, queue, jid, r) end
      job.write(at, jid, r)
      call("ZADD", queue.leases, at.now, jid)
      queues.lower_due(queue, at.now)
      queues.signal_if_idle(queue)
      count = count + 1
    end
  end
  return count
end

return M
