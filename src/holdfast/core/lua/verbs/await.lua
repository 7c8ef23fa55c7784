-- await: what became of some jobs. The ones still open are marked, so that their
-- end is announced on the channel of their result.
local late = require("base.late")
local record = require("base.record")
local failure = require("nouns.failure")
local job = require("nouns.job")
local result = require("nouns.result")
local state = require("nouns.state")
local M = {}

local AWAITED = record.FLAG.AWAITED

local mp_pack
late.bind(function() mp_pack = cmsgpack.pack end)

local function outcome(at, jid, r)
  if not r then
    local kept = result.read(at, jid)
    if kept then return "done", kept end
    return "gone", at.ended and at.ended.read(at, jid) or false
  end
  if r.state == state.COMPLETE then return "done", result.read(at, jid) end
  if r.state == state.FAILED then
    local noted = failure.read(at, jid, r) or { "", "" }
    return "failed", mp_pack({ noted[1], noted[2] })
  end
  if not record.has(r.flags, AWAITED) then
    r.flags = record.with(r.flags, AWAITED)
    job.write(at, jid, r)
  end
  return "open", false
end

-- Returns (status, payload) per jid: open, done with the result's bytes, failed
-- with packed {group, message}, or gone (with what `ended` keeps of a cancelled one).
function M.run(at, args, first, last)
  local reply = {}
  for i = first, last do
    local n = #reply
    reply[n + 1], reply[n + 2] = outcome(at, args[i], job.read(at, args[i]))
  end
  return reply
end

return M
