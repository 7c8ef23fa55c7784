-- root_timed: the root where the caller brings the time. One that is missing is made.
local late = require("base.late")
local root = require("base.root")
local M = {}

local call
late.bind(function() call = redis.call end)

-- An older core that keeps its jobs here has given ours other things under the same names,
-- and a pop would throw them away.
local function begin(at, key)
  if call("EXISTS", at.keys.older_core) == 1 then
    error("This database holds jobs of an older core (key " .. at.keys.older_core ..
      "): let it finish them, or use an empty database")
  end
  return root.make(key)
end

-- Fills the `at` of one call.
function M.open(at, key, now)
  at.packed = call("HGET", key, "h") or begin(at, key)
  at.settings, at.now = false, now
  return at
end

return M
