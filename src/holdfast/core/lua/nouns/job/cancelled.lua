-- cancelled: what is kept of a job that was cancelled after it ran or while its result was
-- awaited: who cancelled it and when, for as long as results are kept.
--
-- `ctx.cancelled` is this, or false in roots of the older protocols.
local record = require("base.record")
local root = require("base.root")
local state = require("nouns.job.state")
local M = {}

local MOST, STEP = 10000, 512 -- marks kept, and dropped in one call

local function forget(ctx, jids)
  if not jids[1] then return end
  local names = {}
  for i = 1, #jids do names[i] = ctx.keys.ended_mark .. jids[i] end
  call("ZREM", ctx.keys.ended, unpack_(jids))
  call("UNLINK", unpack_(names))
end

-- Drops the marks whose time is over, and the oldest beyond the number kept.
function M.sweep(ctx)
  local ended = ctx.keys.ended
  local over = ctx.now - root.settings(ctx).result_keep
  forget(ctx, call("ZRANGE", ended, "-inf", over, "BYSCORE", "LIMIT", 0, STEP))
  local many = call("ZCARD", ended) - MOST
  if many > 0 then forget(ctx, call("ZRANGE", ended, 0, math.min(many, STEP) - 1)) end
end

-- The job is about to be deleted, by `who` ("": not given). One that never ran and is not awaited
-- leaves nothing. Returns whether something is kept.
function M.note(ctx, jid, r, who)
  if r.attempts > 0 then root.note_granted(ctx, r.token) end
  if r.attempts == 0 and not record.has(r.flags, record.FLAG.AWAITED) then return false end
  local worker = r.state == state.RUNNING and r.worker or ""
  local mark = mp_pack({ who, ctx.now, r.queue, r.klass, state.NAME[r.state], worker, r.attempts })
  call("SET", ctx.keys.ended_mark .. jid, mark, "PX", root.settings(ctx).result_keep)
  call("ZADD", ctx.keys.ended, ctx.now, jid)
  return true
end

-- (who, ms, queue, klass, state, worker, attempts), packed; or false.
function M.read(ctx, jid) return call("GET", ctx.keys.ended_mark .. jid) end

return M
