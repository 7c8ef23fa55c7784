-- unknown: a job whose code is not known to the worker that took it. It is requeued at
-- no cost and waits for another one, for the time of the setting `unknown-for`.
--
-- Extra field `u` {first, count, attempt, when, worker, error}: since when it is given back
-- so, how often, and the last time. An attempt in between that ended otherwise resets this.
local text = require("base.text")
local extra = require("nouns.job.extra")
local settings = require("nouns.setting.settings")
local M = {}

local FIRST, LONGEST = 1000, 60000 -- ms between two attempts
local MOST_DOUBLINGS = 6

-- What is noted of a job, nil if nothing is.
function M.read(ctx, jid, r)
  local packed = extra.get(ctx, jid, r, "u")
  return packed and mp_unpack(packed) or nil
end

-- The worker that holds the job does not know its code. Returns the ms until another may
-- look at it, or nil and for how many ms none knew it: then it waited long enough.
-- Write the record afterwards.
function M.note(ctx, jid, r, problem)
  local was, first, count = M.read(ctx, jid, r), ctx.now, 1
  if was and was[3] == r.attempts - 1 then first, count = was[1], was[2] + 1 end
  local left = first + settings.number(ctx, settings.UNKNOWN_FOR) * 1000 - ctx.now
  if left <= 0 then return nil, ctx.now - first end
  extra.set(ctx, jid, r, "u", mp_pack({ first, count, r.attempts, ctx.now, r.worker, text.cut(problem, 1000) }))
  return min(FIRST * 2 ^ min(count - 1, MOST_DOUBLINGS), LONGEST, left)
end

return M
