-- unfail: failed jobs of a group go back to work, those first that failed first.
local keys = require("base.keys")
local record = require("base.record")
local refuse = require("base.refuse")
local dependency = require("nouns.dependency.dependency")
local dependents = require("nouns.dependency.dependents")
local failure = require("nouns.failure.failure")
local members = require("nouns.flow.members")
local ending = require("nouns.job.ending")
local event = require("nouns.event.event")
local extra = require("nouns.job.extra")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local queues = require("nouns.queue.queue")
local report = require("nouns.lease.report")
local state = require("nouns.job.state")
local unique = require("nouns.job.unique")
local M = {}

local PIECE = 512 -- jobs that go back at once
local MOST_LOOKED = 2048 -- jobs that stay, of those that one call looks at
local NONE = {}
-- Where the extra fields of a job are in what `noted` reads.
local FAILURE, LINES, PROGRESS, LOG, PREEMPTED, UNKNOWN = 1, 2, 3, 4, 5, 6

-- What is kept beside the record of each: the failures alone, and the fields that a new life changes.
local function noted(ctx, jids, records)
  local failures, beside = {}, {}
  for i = 1, #jids do
    local has_any = record.has(records[i].flags, record.FLAG.EXTRA)
    beside[i] = has_any and extra.many(ctx, jids[i], "e", "h", "p", "g", "c", "u") or NONE
    failures[i] = beside[i][FAILURE] or false
  end
  return failures, beside
end

-- Failed jobs get a new life in this queue, in that order: their retries are renewed, their
-- priority and what was noted of the failure are kept.
function M.revive(ctx, queue, jids, records)
  local waiting = 0
  for i = 1, #jids do
    if dependency.is_open(records[i]) then waiting = waiting + 1 end
  end
  local first, idle = queues.enter(ctx, queue, #jids - waiting) -- before anything is written: it may refuse
  local failures, beside = noted(ctx, jids, records)
  failure.remove_many(ctx, jids, records, failures)
  local ready_jids, ready, groups = {}, {}, {}
  for i = 1, #jids do
    local jid, r, had = jids[i], records[i], beside[i]
    history.add(ctx, jid, r, history.PUT, queue.name, nil, nil, had[LINES])
    if had[PROGRESS] or had[LOG] or had[PREEMPTED] or had[UNKNOWN] then report.clear(ctx, jid, r) end
    r.queue, r.remaining, r.losses = queue.name, r.retries, 0
    if dependency.is_open(r) then
      dependency.hold_back(ctx, queue, jid, r, 0)
      job.write(ctx, jid, r)
      if r.klass == members.KLASS then groups[#groups + 1] = members.read(ctx, members.flow_of(jid) or "") end
    else
      ready_jids[#ready_jids + 1], ready[#ready + 1] = jid, r
    end
  end
  job.make_many_ready(ctx, queue, ready_jids, ready, first, idle)
  -- All members may have ended before: then none will do that.
  for i = 1, #groups do ending.settle_group(ctx, groups[i]) end
end

-- A failed job that may be tried again with those in the set `others`: its record; or nil, and why not. One that failed
-- for its parents waits for those that are not complete.
function M.may_revive(ctx, jid, r, others)
  local holder = ctx.keys.unique and unique.taken_from(ctx, jid, r, others)
  if holder then return nil, refuse.job("NOT_UNIQUE", holder) end
  local found, problem = dependents.look_again(ctx, jid, r)
  if problem then return nil, refuse.job("WRONG_STATE", problem) end
  return found
end

-- Moves the oldest `count` jobs of a group behind the first `skipped`, as far as they are failed; the others leave it,
-- but for those whose unique key another job has taken, which stay. Returns how many it moved, how many it looked at,
-- and how many stay.
local function move_some(ctx, queue, group, skipped, count)
  local oldest, jids, records, stay, others = failure.oldest(ctx, group, count, skipped), {}, {}, 0, {}
  for i = 1, #oldest do
    local r, n = job.read(ctx, oldest[i]), #jids + 1
    local is_failed = r and r.state == state.FAILED
    if is_failed then r = M.may_revive(ctx, oldest[i], r, others) end
    if not is_failed then
      failure.leave(ctx, group, oldest[i])
    elseif r then
      jids[n], records[n], others[oldest[i]] = oldest[i], r, true
    else
      stay = stay + 1
    end
  end
  if #jids > 0 then M.revive(ctx, queue, jids, records) end
  return #jids, #oldest, stay
end

-- Moves up to `count` jobs, past those that have to stay, of which it looks at MOST_LOOKED. Returns how many it moved.
function M.run(ctx, name, group, count)
  local total, skipped, queue = 0, 0, keys.of_queue(ctx, name)
  while count > 0 and skipped <= MOST_LOOKED do
    local piece = min(count, PIECE)
    local moved, looked, stay = move_some(ctx, queue, group, skipped, piece)
    total, skipped, count = total + moved, skipped + stay, count - looked + stay
    if looked < piece then break end
  end
  if total > 0 then event.changed(ctx, "queue:" .. name) end
  return total
end

return M
