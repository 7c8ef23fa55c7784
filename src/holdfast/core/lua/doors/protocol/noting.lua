-- noting: what people write down about a job, and which jobs they watch.
local late = require("base.late")
local words = require("doors.protocol.words")
local job_text = require("doors.protocol.job_text")
local job = require("nouns.job")
local log = require("verbs.log")
local track = require("verbs.track")
local M = {}

local encode
late.bind(function() encode = cjson.encode end)

M["job.log"] = function(at, args)
  local jid = words.text(args, 3, "Log(): Argument 'jid' missing")
  local message = words.text(args, 4, "Log(): Argument 'message' missing")
  local data = args[5] and words.object(args[5], "Log(): Argument 'data' is not a JSON object") or ""
  local r = job.read(at, jid) or words.refuse("Log(): Job " .. jid .. " does not exist")
  log.one(at, jid, r, message, data)
end

local function mark(at, args, on)
  local jid = words.text(args, 3, 'Track(): Arg "jid" missing')
  local known = job.read(at, jid) or not on and track.is_marked(at, jid)
  if not known then words.refuse("Track(): Job does not exist") end
  return tostring(track.run(at, jid, on, true))
end

M["job.track"] = function(at, args) return mark(at, args, true) end
M["job.untrack"] = function(at, args) return mark(at, args, false) end

M["jobs.tracked"] = function(at)
  local marks, jobs, expired = track.marks(at), {}, {}
  for i = 1, #marks do
    local r = job.read(at, marks[i])
    if r then jobs[#jobs + 1] = job_text.of(at, marks[i], r) else expired[#expired + 1] = encode(marks[i]) end
  end
  return '{"jobs":' .. job_text.list(jobs, "{}") .. ',"expired":' .. job_text.list(expired, "{}") .. "}"
end

return M
