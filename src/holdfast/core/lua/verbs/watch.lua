-- watch: somebody looks at the pages for a while, so changes are told.
local root = require("base.root")
local M = {}

M.LONGEST = 60000

-- For `span` ms from now on. Returns until when, which another watcher may have set later.
function M.run(at, span)
  local until_, was = at.now + span, root.unpacked(at.packed).watched
  if was > until_ and was <= at.now + M.LONGEST then return was end
  root.watch(at, until_)
  return until_
end

-- Lowers the flag when nobody looks any more.
function M.lower(at)
  if at.flags % (2 * root.WATCHED) >= root.WATCHED and not at.watched then root.watch(at, 0) end
end

return M
