-- resume: leases go over to another name, of a worker that continues what it held before.
--
-- The attempt stays the same: its token, its start, and the time that its run may take.
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local attempt = require("nouns.job.attempt")
local heartbeat = require("verbs.heartbeat")
local M = {}

M.WIDTH = 3 -- (holder, jid, token)

-- The job of a held lease is another worker's from now on. One that is its own already was renamed before.
local function rename(ctx, worker, holder, jid, token)
  local r = lease.held(ctx, holder, jid, token)
  if not r or holder == worker then return end
  if ctx.workers then ctx.workers.drop(ctx, holder, jid) end
  r.worker = worker
  job.write(ctx, jid, r)
end

-- `args[first … last]` are (holder, jid, token); `length` is in ms, 0 for each queue's own.
-- Returns the rows of the leases that `worker` holds now, whole again.
function M.run(ctx, worker, length, args, first, last)
  local beats, rows = {}, {}
  for i = first, last, M.WIDTH do
    rename(ctx, worker, args[i], args[i + 1], tonumber(args[i + 2]))
    local n = #beats
    beats[n + 1], beats[n + 2], beats[n + 3], beats[n + 4] = worker, args[i + 1], args[i + 2], ""
  end
  local ends = heartbeat.run(ctx, length, beats, 1, #beats)
  for i = 1, #ends do
    local jid = beats[i * heartbeat.WIDTH - 2]
    if ends[i] > 0 then attempt.row(ctx, rows, jid, job.read(ctx, jid), ends[i], ends[i] - ctx.now) end
  end
  return rows
end

return M
