-- attempt: a job that is off the usual path becomes a running one.
--
-- `give` says whose: worker, ends and length (ms), limited (whether the queue has a
-- limit), and out, the list that rows are appended to. `give.odd` becomes true if a
-- token is not the time of the grant, which a replay has to know; `least` is the
-- earliest end of all leases, and `spent` counts jobs with more than their record. Tokens
-- are above `granted`, also above those of deleted jobs of the same names.
local record = require("base.record")
local extra = require("nouns.extra")
local history = require("nouns.history")
local job = require("nouns.job")
local options = require("nouns.options")
local state = require("nouns.state")
local M = {}

local FLAG = record.FLAG
local MOST_ATTEMPTS = 65535 -- what the record can count

-- Appends the row of a job that is leased until `ends`; `give.row` may be another way.
function M.row(at, out, jid, r, ends, length)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] =
    jid, at.record.facts(r, ends, length), job.body(at, jid, r), extra.packed(at, jid, r)
end

-- Whoever keeps lists of their own is told of the grant.
local function tell(at, give, jid, r, ends)
  if at.workers then at.workers.hold(at, give.worker, jid, ends) end
  if at.events.tracked then at.events.tracked(at, "popped", jid, r) end
end

-- A job with options has just been popped. Returns the end of its lease: its run may
-- be limited. It has started now, so it cannot come too late any more.
local function begin_with_options(at, give, jid, r)
  local ends = options.lease_end(at, jid, r, give.ends)
  if ends < give.least then give.least = ends end
  r.flags = record.without(r.flags, FLAG.EXPIRING)
  return ends
end

-- Turns a ready or lost job that is off the usual path into a running one.
-- Appends its row; returns the new record, the time its wait is counted from, and the
-- end of its lease.
function M.begin(at, give, jid, r, sequence)
  local now, since, token = at.now, at.record.since(r), r.token + 1
  if token <= give.granted then token = give.granted + 1 end
  if token < now then token = now end
  if token ~= now then give.odd = true end
  r.state, r.token, r.popped, r.ended, r.worker = state.RUNNING, token, now, sequence, give.worker
  if r.attempts < MOST_ATTEMPTS then r.attempts = r.attempts + 1 end
  r.flags = record.without(r.flags, FLAG.NOTICED)
  local ends = give.ends
  if record.has(r.flags, FLAG.EXTRA) then give.spent = give.spent + 1 end
  if record.has(r.flags, FLAG.OPTIONS) then ends = begin_with_options(at, give, jid, r) end
  at.record.begin(r, now)
  at.record.extend(r, ends)
  if record.has(r.flags, FLAG.TOLD) then history.note(at, jid, r, history.POPPED, r.queue) end
  tell(at, give, jid, r, ends);
  (give.row or M.row)(at, give.out, jid, r, ends, ends - now)
  return at.record.write(r), since, ends
end

return M
