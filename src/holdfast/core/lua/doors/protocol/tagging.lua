-- tagging: labels of jobs, and which jobs have one.
local words = require("doors.protocol.words")
local job_text = require("doors.protocol.job_text")
local job = require("nouns.job")
local tags = require("nouns.tag")
local tag = require("verbs.tag")
local M = {}

local LEAST = 2 -- jobs that have a tag worth naming

local function change(at, args, adds)
  local jid = words.text(args, 3, 'Tag(): Arg "jid" missing')
  local r = job.read(at, jid) or words.refuse("Tag(): Job " .. jid .. " does not exist")
  return job_text.names(tag.one(at, adds, jid, r, args, 4, #args), at.accent.empty_list)
end

M["job.addTag"] = function(at, args) return change(at, args, true) end
M["job.removeTag"] = function(at, args) return change(at, args, false) end

M["jobs.tagged"] = function(at, args)
  local name = words.text(args, 3, 'Tag(): Arg "tag" missing')
  local offset, limit = words.page(at, args, 4, "Tag")
  local jids = tags.range(at, name, offset, offset + limit - 1)
  return '{"total":' .. tags.size(at, name) .. ',"jobs":' .. job_text.names(jids, "{}") .. "}"
end

M["tags.top"] = function(at, args)
  local offset, limit = words.page(at, args, 3, "Tag")
  local found, names = tag.top(at, LEAST, offset, limit), {}
  for i = 1, #found, 2 do names[#names + 1] = found[i] end
  return job_text.names(names, at.accent.empty_list)
end

return M
