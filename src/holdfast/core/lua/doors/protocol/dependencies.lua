-- dependencies: what a job that waits for others waits for is changed.
local arguments = require("doors.protocol.arguments")
local dependency = require("nouns.dependency.dependency")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local depend = require("verbs.depend")
local M = {}

-- A job that waits for others.
local function waiting(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  local r = job.read(ctx, jid)
  if r and r.state == state.DEPENDS then return jid, r end
  local is = r and state.NAME[r.state] or "false"
  arguments.refuse("Depends(): Job " .. jid .. " not in the depends state: " .. is)
end

M["job.addDependency"] = function(ctx, args)
  local jid, r = waiting(ctx, args)
  local refused = depend.add(ctx, jid, r, depend.slice(args, 4, #args))
  if refused then arguments.refuse_code("Depends", refused) end
  return 1
end

M["job.removeDependency"] = function(ctx, args)
  local jid, r = waiting(ctx, args)
  local all = args[4] == "all"
  depend.remove(ctx, jid, r, all and dependency.parents(ctx, jid, r) or depend.slice(args, 4, #args))
  return 1
end

return M
