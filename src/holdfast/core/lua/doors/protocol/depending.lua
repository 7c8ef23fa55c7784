-- depending: what a job that waits for others waits for is changed.
local words = require("doors.protocol.words")
local dependency = require("nouns.dependency")
local job = require("nouns.job")
local state = require("nouns.state")
local depend = require("verbs.depend")
local M = {}

-- A job that waits for others.
local function waiting(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local r = job.read(at, jid)
  if r and r.state == state.DEPENDS then return jid, r end
  local is = r and state.NAME[r.state] or "false"
  words.refuse("Depends(): Job " .. jid .. " not in the depends state: " .. is)
end

M["job.addDependency"] = function(at, args)
  local jid, r = waiting(at, args)
  local refused = depend.add(at, jid, r, depend.slice(args, 4, #args))
  if refused then words.refuse_code("Depends", refused) end
  return 1
end

M["job.removeDependency"] = function(at, args)
  local jid, r = waiting(at, args)
  local all = args[4] == "all"
  depend.remove(at, jid, r, all and dependency.parents(at, jid, r) or depend.slice(args, 4, #args))
  return 1
end

return M
