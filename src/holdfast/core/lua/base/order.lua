-- order: the order of ready jobs. The other form, for roots whose callers pass the time, is
-- `order_reqless`; nouns use the one that `ctx` holds and never ask which.
--
-- score = sequence - priority * 2^40, member = jid. Doubles are exact to
-- 2^53, so priorities within +-4095 and 5.5e11 jobs per queue are exact. A score
-- is never turned into text by Lua, which would keep 14 digits of it.
local M = {}

local CLASS = 1099511627776 -- 2^40, the width of one priority
local START = 549755813888 -- 2^39, where sequences begin
local URGENT = 9007199254740992 -- 2^53

M.native = { START = START }

function M.native.entry(sequence, priority, _, jid)
  return sequence - priority * CLASS, jid
end

function M.native.jid(member) return member end

-- The sequence behind a score: what the record keeps while the job runs. Never
-- the raw score, which is negative for a positive priority.
function M.native.sequence(score, priority)
  local sequence = score + priority * CLASS
  if sequence < 0 then return score + URGENT end -- it was timed out, ahead of every class
  return sequence
end

-- Where a priority begins: all scores below are of higher ones. As text, all digits of it.
function M.native.class_start(priority) return format("%.0f", -priority * CLASS) end

function M.native.member(_, jid) return jid end

-- Where a job goes that is ready now. Returns score and member, as the next two do.
function M.native.place(r, sequence, _, jid) return sequence - r.priority * CLASS, jid end

-- Ahead of its whole class (its priority was changed while it waited at `score`).
function M.native.ahead(r, score, priority, jid)
  local sequence = M.native.sequence(score, r.priority)
  if sequence >= START then sequence = sequence - START end
  return sequence - priority * CLASS, jid
end

-- Ahead of its whole class, of several in the order in which they were there before (its worker gave it back).
function M.native.first_again(r, jid)
  if r.ended >= START then r.ended = r.ended - START end
  return r.ended - r.priority * CLASS, jid
end

-- Ahead of every class (it was timed out).
function M.native.urgent(_, sequence, jid) return sequence - URGENT, jid end

-- How failures are ranked: one of now, or of a moment before.
function M.native.failure(ctx, when) return when or ctx.now end

-- How a job is ranked among those pending in `set`: as they came, also within a
-- millisecond. (A double has room for a thousandth of one.)
local STEP = 1 / 1024
M.native.STEP = STEP
function M.native.pending(ctx, set)
  local last = tonumber(call("ZRANGE", set, -1, -1, "WITHSCORES")[2])
  if last and last >= ctx.now then return last + STEP end
  return ctx.now
end

return M
