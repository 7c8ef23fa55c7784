-- watch: someone looks at the pages for a while, so changes are published.
local root = require("base.root")
local minutes = require("nouns.queue.minutes")
local M = {}

M.LONGEST = 60000

-- For `span` ms from now on. Returns until when, which another watcher may have set later.
function M.run(ctx, span)
  minutes.continue(ctx)
  local until_, was = ctx.now + span, root.unpacked(ctx.packed).watched
  if was > until_ and was <= ctx.now + M.LONGEST then return was end
  root.watch(ctx, until_)
  return until_
end

-- Clears the flag when no client watches any more.
function M.lower(ctx)
  if root.has(ctx, root.WATCHED) and not ctx.watched then root.watch(ctx, 0) end
end

return M
