-- ended: what is kept of a job that was cancelled after it ran or while somebody waited for
-- its result: who cancelled it and when, for as long as results are kept.
--
-- `at.ended` is this, or false in roots of the older protocols.
local late = require("base.late")
local record = require("base.record")
local root = require("base.root")
local state = require("nouns.state")
local M = {}

local MOST, STEP = 10000, 512 -- marks kept, and dropped in one call

local call, unpack_, mp_pack
late.bind(function() call, unpack_, mp_pack = redis.call, unpack, cmsgpack.pack end)

local function forget(at, jids)
  if not jids[1] then return end
  local names = {}
  for i = 1, #jids do names[i] = at.keys.ended_mark .. jids[i] end
  call("ZREM", at.keys.ended, unpack_(jids))
  call("UNLINK", unpack_(names))
end

-- Drops the marks whose time is over, and the oldest beyond the number kept.
function M.sweep(at)
  local ended = at.keys.ended
  local over = at.now - root.settings(at).result_keep
  forget(at, call("ZRANGE", ended, "-inf", over, "BYSCORE", "LIMIT", 0, STEP))
  local many = call("ZCARD", ended) - MOST
  if many > 0 then forget(at, call("ZRANGE", ended, 0, math.min(many, STEP) - 1)) end
end

-- The job is about to be deleted, by `who` ("": not given). One that never ran and that nobody
-- awaits leaves nothing. Returns whether something is kept.
function M.note(at, jid, r, who)
  if r.attempts > 0 then root.note_granted(at, r.token) end
  if r.attempts == 0 and not record.has(r.flags, record.FLAG.AWAITED) then return false end
  local worker = r.state == state.RUNNING and r.worker or ""
  local mark = mp_pack({ who, at.now, r.queue, r.klass, state.NAME[r.state], worker, r.attempts })
  call("SET", at.keys.ended_mark .. jid, mark, "PX", root.settings(at).result_keep)
  call("ZADD", at.keys.ended, at.now, jid)
  return true
end

-- (who, ms, queue, klass, state, worker, attempts), packed; or false.
function M.read(at, jid) return call("GET", at.keys.ended_mark .. jid) end

return M
