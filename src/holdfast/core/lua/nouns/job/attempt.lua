-- attempt: a job that is off the straight path becomes a running one, for the `grant` under way.
local record = require("base.record")
local extra = require("nouns.job.extra")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local options = require("nouns.job.options")
local state = require("nouns.job.state")
local M = {}

local FLAG = record.FLAG
local MOST_ATTEMPTS = 65535 -- what the record can count

-- Appends the row of a job that is leased until `ends`; `grant.row` may be another way.
function M.row(ctx, out, jid, r, ends, length)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] =
    jid, ctx.record.facts(r, ends, length), job.body(ctx, jid, r), extra.packed(ctx, jid, r)
end

-- Forms that keep lists of their own, or followers, note the grant.
local function notify(ctx, grant, jid, r, ends)
  if ctx.workers then ctx.workers.hold(ctx, grant.worker, jid, ends) end
  if ctx.events.tracked then ctx.events.tracked(ctx, "popped", jid, r) end
end

-- A job with options has just been popped. Returns the end of its lease: its run may
-- be limited. It has started now, so it cannot come too late any more.
local function begin_with_options(ctx, grant, jid, r)
  local ends = options.lease_end(ctx, jid, r, grant.ends)
  if ends < grant.least then grant.least = ends end
  r.flags = record.without(r.flags, FLAG.EXPIRING)
  return ends
end

-- Turns a ready or lost job that is off the straight path into a running one.
-- Appends its row; returns the new record, the time its wait is counted from, and the
-- end of its lease.
function M.begin(ctx, grant, jid, r, sequence)
  local now, since, token = ctx.now, ctx.record.since(r), r.token + 1
  if token <= grant.granted then token = grant.granted + 1 end
  if token < now then token = now end
  if token ~= now then grant.odd = true end
  r.state, r.token, r.popped, r.ended, r.worker = state.RUNNING, token, now, sequence, grant.worker
  if r.attempts < MOST_ATTEMPTS then r.attempts = r.attempts + 1 end
  r.flags = record.without(r.flags, FLAG.NOTICED)
  local ends = grant.ends
  if record.has(r.flags, FLAG.EXTRA) then grant.spent = grant.spent + 1 end
  if record.has(r.flags, FLAG.OPTIONS) then ends = begin_with_options(ctx, grant, jid, r) end
  ctx.record.begin(r, now)
  ctx.record.extend(r, ends)
  if record.has(r.flags, FLAG.HISTORY) then history.note(ctx, jid, r, history.POPPED, r.queue) end
  notify(ctx, grant, jid, r, ends);
  (grant.row or M.row)(ctx, grant.out, jid, r, ends, ends - now)
  return ctx.record.write(r), since, ends
end

return M
