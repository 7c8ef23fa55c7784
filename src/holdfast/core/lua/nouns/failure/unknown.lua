-- unknown: a job whose code is not known to the worker that took it. It is requeued at
-- no cost and waits for another one, for the time of the setting `unknown-for`. One that needs a worker of a newer
-- release waits likewise, without an attempt, for as long as it takes.
--
-- Extra field `u` {first, count, attempt, when, worker, error}: since when it is given back
-- so, how often, and the last time; behind that the level that it needs, if that was the reason. An attempt in between
-- that ended otherwise resets this.
local keys = require("base.keys")
local text = require("base.text")
local extra = require("nouns.job.extra")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local settings = require("nouns.setting.settings")
local state = require("nouns.job.state")
local M = {}

local FIRST, LONGEST = 1000, 60000 -- ms between two attempts
local MOST_DOUBLINGS = 6

-- What is noted of a job, nil if nothing is.
function M.read(ctx, jid, r)
  local packed = extra.get(ctx, jid, r, "u")
  return packed and mp_unpack(packed) or nil
end

local function pause_of(count) return min(FIRST * 2 ^ min(count - 1, MOST_DOUBLINGS), LONGEST) end

-- The worker that holds the job does not know its code. Returns the ms until another may
-- look at it, or nil and for how many ms none knew it: then it waited long enough.
-- Write the record afterwards.
function M.note(ctx, jid, r, problem)
  local was, first, count = M.read(ctx, jid, r), ctx.now, 1
  if was and was[3] == r.attempts - 1 then first, count = was[1], was[2] + 1 end
  local left = first + settings.number(ctx, settings.UNKNOWN_FOR) * 1000 - ctx.now
  if left <= 0 then return nil, ctx.now - first end
  extra.set(ctx, jid, r, "u", mp_pack({ first, count, r.attempts, ctx.now, r.worker, text.cut(problem, 1000) }))
  return min(pause_of(count), left)
end

-- A job that is in no set any more waits for another worker: this one is of level `level`, and the job needs `needs`.
-- Writes the record. Returns when the job is due.
function M.hold_back(ctx, jid, r, worker, needs, level)
  local was, first, count = M.read(ctx, jid, r), ctx.now, 1
  if was and was[3] == r.attempts then first, count = was[1], was[2] + 1 end
  local problem = format("worker %s has level %d, and the job needs level %d", worker, level, needs)
  extra.set(ctx, jid, r, "u", mp_pack({ first, count, r.attempts, ctx.now, worker, problem, needs }))
  history.add(ctx, jid, r, history.UNKNOWN, "", problem)
  local queue = keys.of_queue(ctx, r.queue)
  if r.state == state.RUNNING then lease.release(ctx, jid, r) end
  if r.state == state.THROTTLED then ctx.throttles.remove(ctx, queue, jid, r) end -- it was let go: another may
  local pause = pause_of(count)
  job.place(ctx, queue, jid, r, pause)
  job.write(ctx, jid, r)
  return ctx.now + pause
end

return M
