-- await: what became of some jobs. The ones still open are marked, so that their
-- end is announced on the channel of their result.
local record = require("base.record")
local failure = require("nouns.failure.failure")
local job = require("nouns.job.job")
local result = require("nouns.job.result")
local state = require("nouns.job.state")
local M = {}

local AWAITED = record.FLAG.AWAITED

local function outcome(ctx, jid, r)
  if not r then
    local kept = result.read(ctx, jid)
    if kept then return "done", kept end
    return "gone", ctx.cancelled and ctx.cancelled.read(ctx, jid) or false
  end
  if r.state == state.COMPLETE then return "done", result.read(ctx, jid) end
  if r.state == state.FAILED then
    local noted = failure.read(ctx, jid, r) or { "", "" }
    return "failed", mp_pack({ noted[failure.GROUP], noted[failure.MESSAGE] })
  end
  if not record.has(r.flags, AWAITED) then
    r.flags = record.with(r.flags, AWAITED)
    job.write(ctx, jid, r)
  end
  return "open", false
end

-- Returns (status, payload) per jid: open, done with the result's bytes, failed
-- with packed {group, message}, or gone (with what `ended` keeps of a cancelled one).
function M.run(ctx, args, first, last)
  local reply = {}
  for i = first, last do
    local n = #reply
    reply[n + 1], reply[n + 2] = outcome(ctx, args[i], job.read(ctx, args[i]))
  end
  return reply
end

return M
