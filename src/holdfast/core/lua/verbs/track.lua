-- track: marks a job as tracked, so that its events are published. The mark outlives the job.
local record = require("base.record")
local refuse = require("base.refuse")
local root = require("base.root")
local job = require("nouns.job.job")
local M = {}

local TRACKED = record.FLAG.TRACKED
local MOST = 1000 -- marks of one reply

function M.is_marked(ctx, jid) return call("ZSCORE", ctx.keys.marks, jid) and true or false end

-- With `again`, an existing mark gets the present time.
local function mark(ctx, jid, again)
  local changed = 0
  if again or not M.is_marked(ctx, jid) then changed = call("ZADD", ctx.keys.marks, ctx.now, jid) end
  if changed == 1 then root.set_flag(ctx, root.MARKED, true) end
  return changed
end

local function unmark(ctx, jid)
  local changed = call("ZREM", ctx.keys.marks, jid)
  if changed == 1 and call("EXISTS", ctx.keys.marks) == 0 then root.set_flag(ctx, root.MARKED, false) end
  return changed
end

-- Returns 1 if something changed, else 0. The mark of a job that is gone can be taken away.
function M.run(ctx, jid, on, again)
  local r = job.read(ctx, jid)
  if on and not r then refuse.call("JOB_NOT_FOUND", jid) end
  local changed = (on and mark or unmark)(ctx, jid, again)
  if r and changed == 1 then
    r.flags = (on and record.with or record.without)(r.flags, TRACKED)
    job.write(ctx, jid, r)
  end
  if ctx.events.marked then ctx.events.marked(ctx, on and "track" or "untrack", jid) end
  return changed
end

-- The jids that are marked, in the order they were tracked.
function M.marks(ctx) return call("ZRANGE", ctx.keys.marks, 0, -1) end

-- (jid, since, whether the job exists)… in the order they were tracked, the first thousand.
function M.all(ctx)
  local marks, found = call("ZRANGE", ctx.keys.marks, 0, MOST - 1, "WITHSCORES"), {}
  for i = 1, #marks, 2 do
    local n = #found
    found[n + 1], found[n + 2] = marks[i], tonumber(marks[i + 1])
    found[n + 3] = call("EXISTS", ctx.keys.job .. marks[i])
  end
  return found
end

return M
