-- throttle: the limits of throttles, and their slots freed by hand.
local definition = require("nouns.throttle.throttle_definition")
local M = {}

-- At most `maximum` jobs of a throttle run at once: 0 for any number, nil for as many as
-- before. `span` is how long
-- that holds, in ms; 0 leaves the end of the limit as it is.
function M.set(ctx, id, maximum, span)
  ctx.throttles.set(ctx, id, maximum, span)
  ctx.events.changed(ctx, "throttles")
  return 1
end

-- Takes the limit away; returns 1, or 0 if there was none. Slots and pending jobs stay.
function M.delete(ctx, id)
  local was = ctx.throttles.delete(ctx, id)
  ctx.events.changed(ctx, "throttles")
  return was
end

-- Takes slots from jobs that run on, or forgets that a job waits for one. Returns how many
-- slots that freed.
function M.release(ctx, id, args, first, last)
  local freed = 0
  for i = first, last do
    if ctx.throttles.release_one(ctx, id, args[i]) then freed = freed + 1 end
  end
  ctx.events.changed(ctx, "throttles")
  return freed
end

-- [maximum, used, pending, ms until the limit ends (-1: it has no end, -2: there is none)]
function M.get(ctx, id) return ctx.throttles.state(ctx, id) end

-- [cursor, id …] of the throttles that have a limit, "0" when that was all.
function M.list(ctx, cursor, count) return definition.page(ctx, cursor, count) end

return M
