-- notes: what people write down about a job, and which jobs they watch.
local arguments = require("doors.protocol.arguments")
local job_text = require("doors.protocol.job_text")
local job = require("nouns.job")
local log = require("verbs.log")
local track = require("verbs.track")
local M = {}

M["job.log"] = function(ctx, args)
  local jid = arguments.text(args, 3, "Log(): Argument 'jid' missing")
  local message = arguments.text(args, 4, "Log(): Argument 'message' missing")
  local data = args[5] and arguments.object(args[5], "Log(): Argument 'data' is not a JSON object") or ""
  local r = job.read(ctx, jid) or arguments.refuse("Log(): Job " .. jid .. " does not exist")
  log.one(ctx, jid, r, message, data)
end

local function mark(ctx, args, on)
  local jid = arguments.text(args, 3, 'Track(): Arg "jid" missing')
  local known = job.read(ctx, jid) or not on and track.is_marked(ctx, jid)
  if not known then arguments.refuse("Track(): Job does not exist") end
  return tostring(track.run(ctx, jid, on, true))
end

M["job.track"] = function(ctx, args) return mark(ctx, args, true) end
M["job.untrack"] = function(ctx, args) return mark(ctx, args, false) end

M["jobs.tracked"] = function(ctx)
  local marks, jobs, expired = track.marks(ctx), {}, {}
  for i = 1, #marks do
    local r = job.read(ctx, marks[i])
    if r then jobs[#jobs + 1] = job_text.of(ctx, marks[i], r) else expired[#expired + 1] = encode(marks[i]) end
  end
  return '{"jobs":' .. job_text.list(jobs, "{}") .. ',"expired":' .. job_text.list(expired, "{}") .. "}"
end

return M
