-- tags: labels of jobs, and which jobs have one.
local arguments = require("doors.protocol.arguments")
local job_text = require("doors.protocol.job_text")
local job = require("nouns.job")
local tags = require("nouns.tag")
local tag = require("verbs.tag")
local M = {}

local LEAST = 2 -- jobs that have a tag worth naming

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
