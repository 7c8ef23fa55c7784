-- notes: tags, lines of history and marks that people give to jobs.
local arguments = require("doors.protocol.arguments")
local job_text = require("doors.protocol.job_text")
local job = require("nouns.job.job")
local tags = require("nouns.job.tag")
local log = require("verbs.log")
local tag = require("verbs.tag")
local track = require("verbs.track")
local M = {}

local LEAST = 2 -- jobs that have a tag worth naming

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

local function change(ctx, args, adds)
  local jid = arguments.text(args, 3, 'Tag(): Arg "jid" missing')
  local r = job.read(ctx, jid) or arguments.refuse("Tag(): Job " .. jid .. " does not exist")
  return job_text.names(tag.one(ctx, adds, jid, r, args, 4, #args), ctx.dialect.empty_list)
end

M["job.addTag"] = function(ctx, args) return change(ctx, args, true) end
M["job.removeTag"] = function(ctx, args) return change(ctx, args, false) end

M["jobs.tagged"] = function(ctx, args)
  local name = arguments.text(args, 3, 'Tag(): Arg "tag" missing')
  local offset, limit = arguments.page(ctx, args, 4, "Tag")
  local jids = tags.range(ctx, name, offset, offset + limit - 1)
  return '{"total":' .. tags.size(ctx, name) .. ',"jobs":' .. job_text.names(jids, "{}") .. "}"
end

M["tags.top"] = function(ctx, args)
  local offset, limit = arguments.page(ctx, args, 3, "Tag")
  local found, names = tag.top(ctx, LEAST, offset, limit), {}
  for i = 1, #found, 2 do names[#names + 1] = found[i] end
  return job_text.names(names, ctx.dialect.empty_list)
end

return M
