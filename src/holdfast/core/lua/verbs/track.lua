-- track: people watch a job. The mark outlives the job.
local late = require("base.late")
local record = require("base.record")
local job = require("nouns.job")
local M = {}

local TRACKED = record.FLAG.TRACKED

local call
late.bind(function() call = redis.call end)

-- Returns 1 if something changed, else 0.
function M.run(at, jid, on)
  local changed
  if on then
    changed = call("ZADD", at.keys.marks, "NX", at.now, jid)
  else
    changed = call("ZREM", at.keys.marks, jid)
  end
  local r = changed == 1 and job.read(at, jid)
  if r then
    r.flags = (on and record.with or record.without)(r.flags, TRACKED)
    job.write(at, jid, r)
  end
  if at.events.marked then at.events.marked(at, on and "track" or "untrack", jid) end
  return changed
end

return M
