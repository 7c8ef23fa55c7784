-- scan: a page of a set of jobs, with what a search compares of each of them. Writes nothing.
--
-- The rows are as small as they can be: a search looks at many jobs to show a few of them.
local keys = require("base.keys")
local record = require("base.record")
local extra = require("nouns.extra")
local job = require("nouns.job")
local state = require("nouns.state")
local job_row = require("verbs.job_row")
local list = require("verbs.list")
local M = {}

-- State, flags, priority, attempts, retries, remaining, losses, created, queued, popped, ended, due or end of lease;
-- then queue, klass and worker, each behind its length.
local ROW = "<BHhHhhBdddddBc0Bc0Bc0"
local STATE_OF = {
  waiting = state.WAITING, running = state.RUNNING, stalled = state.STALLED, scheduled = state.SCHEDULED,
  depends = state.DEPENDS, throttled = state.THROTTLED, failed = state.FAILED, completed = state.COMPLETE,
  group = state.FAILED,
}
-- The sets whose score is when a job is due, or when its lease ends.
local TIMED = { running = true, stalled = true, scheduled = true }
local CODE = {}
for code = 1, #state.NAME do CODE[state.NAME[code]] = code end
local MOST_BYTES = 262144 -- of data, tags and messages in one call
local NONE = { "", "", 0 }

-- Whether a throttle still keeps it: one that it let go is ready.
local function is_held_back(ctx, jid, r) return call("ZSCORE", keys.of_queue(ctx, r.queue).throttled, jid) end

-- The state of a job in a set as the counts of its queue have it, and its due time. Sets of many states look at
-- each job.
local function placed(ctx, set, score, jid, r)
  local known = STATE_OF[set]
  if known then return known, TIMED[set] and tonumber(score) or tonumber(match(score, "^due:(.*)") or nil) or 0 end
  local name, expires, due = job_row.placed(ctx, jid, r)
  if r.state == state.STALLED or r.state == state.THROTTLED and not is_held_back(ctx, jid, r) then
    return state.WAITING, 0
  end
  if expires > 0 and expires <= ctx.now then return state.STALLED, expires end
  return CODE[name], expires > 0 and expires or due
end

-- A record has another number in the place of its end as long as it has none.
local function packed(r, code, due)
  local over = r.attempts > 0 and (r.state == state.COMPLETE or r.state == state.FAILED)
  return pack(ROW, code, r.flags, r.priority, r.attempts, r.retries, r.remaining, r.losses, r.created, r.queued,
    r.popped, over and r.ended or 0, due, #r.queue, r.queue, #r.klass, r.klass, #r.worker, r.worker)
end

-- Tags, as they are packed, then group, message and time of a failure.
local function noted(ctx, jid, r, wants)
  if not (wants.t or wants.e) or not record.has(r.flags, record.FLAG.EXTRA) then return "", NONE end
  local found = extra.many(ctx, jid, "t", "e")
  return wants.t and found[1] or "", wants.e and found[2] and mp_unpack(found[2]) or NONE
end

-- `count` entries of a set behind (score, member), as `list.run`. `wants` names with letters what else is
-- needed: d data, t tags, e failure. Returns whether the set ends here and its size, then for each entry jid, score,
-- facts ("" for a job that is gone), data, tags, and of a failure group, message and time. A page ends early when it
-- has much data.
function M.run(ctx, set, name, score, member, count, wants)
  local page = list.run(ctx, set, name, score, member, count, "")
  local names, reply, bytes = {}, { #page < 2 * count and 1 or 0, list.size(ctx, set, name) }, 0
  for i = 1, #page, 2 do names[#names + 1] = ctx.keys.job .. page[i] end
  local records = #names > 0 and call("MGET", unpack_(names)) or {}
  for i = 1, #names do
    local jid, place, n, r = page[2 * i - 1], page[2 * i], #reply, records[i] and ctx.record.read(records[i])
    local facts, data, tags, failure = "", "", "", NONE
    if r then
      local code, due = placed(ctx, set, place, jid, r)
      facts = packed(r, code, due)
      tags, failure = noted(ctx, jid, r, wants)
      data = wants.d and job.body(ctx, jid, r) or ""
    end
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = jid, place, facts, data
    reply[n + 5], reply[n + 6], reply[n + 7], reply[n + 8] = tags, failure[1], failure[2], failure[3]
    bytes = bytes + #data + #tags + #failure[2]
    if bytes > MOST_BYTES and i < #names then
      reply[1] = 0
      break
    end
  end
  return reply
end

return M
