-- root_timed: the root where the caller brings the time. One that is missing is made.
local root = require("base.root")
local M = {}

local GUARD = "holdfast keeps its jobs here: scripts of other cores must not work on this database"

local function refuse(what, key, advice)
  error("This database holds " .. what .. " of an older core (key " .. key .. "): " .. advice ..
    ", or use an empty database")
end

-- An older core that keeps its jobs here has given ours other things under the same names,
-- and a pop would throw them away. A pop of its own would do so with ours: what it reads
-- before is kept from it, so that it fails.
local function begin(ctx, key)
  local jobs, settings = ctx.keys.older_core, ctx.keys.older_settings
  if call("EXISTS", jobs) == 1 then refuse("jobs", jobs, "let it finish them") end
  if call("TYPE", settings).ok == "hash" then refuse("settings", settings, "delete that") end
  call("SET", settings, GUARD)
  return root.make(key)
end

-- Fills the `ctx` of one call.
function M.open(ctx, key, now)
  ctx.packed = call("HGET", key, "h") or begin(ctx, key)
  ctx.settings, ctx.now = false, now
  return ctx
end

return M
