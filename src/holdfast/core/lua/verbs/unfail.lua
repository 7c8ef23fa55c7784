-- unfail: failed jobs of a group go back to work, those first that failed first.
local keys = require("base.keys")
local failure = require("nouns.failure")
local event = require("nouns.event")
local history = require("nouns.history")
local job = require("nouns.job")
local queues = require("nouns.queue")
local report = require("nouns.report")
local state = require("nouns.state")
local M = {}

local PIECE = 512 -- jobs that go back at once

-- Failed jobs get a new life in this queue, in that order: their retries are renewed, their
-- priority and what was noted of the failure are kept.
function M.revive(ctx, queue, jids, records)
  local first, idle = queues.enter(ctx, queue, #jids)
  failure.remove_many(ctx, jids, records)
  for i = 1, #jids do
    local jid, r = jids[i], records[i]
    history.add(ctx, jid, r, history.PUT, queue.name)
    report.clear(ctx, jid, r)
    r.queue, r.remaining, r.losses = queue.name, r.retries, 0
  end
  job.make_many_ready(ctx, queue, jids, records, first, idle)
end

-- Moves the oldest `count` jobs of a group, as far as they are failed; the others leave it. Returns how many it moved.
local function move_some(ctx, queue, group, count)
  local oldest, jids, records = failure.oldest(ctx, group, count), {}, {}
  for i = 1, #oldest do
    local r, n = job.read(ctx, oldest[i]), #jids + 1
    if r and r.state == state.FAILED then
      jids[n], records[n] = oldest[i], r
    else
      failure.leave(ctx, group, oldest[i])
    end
  end
  if #jids > 0 then M.revive(ctx, queue, jids, records) end
  return #jids, #oldest
end

-- Looks at up to `count` jobs. Returns how many it moved.
function M.run(ctx, name, group, count)
  local total, queue = 0, keys.of_queue(ctx, name)
  while count > 0 do
    local moved, looked = move_some(ctx, queue, group, min(count, PIECE))
    total, count = total + moved, looked < PIECE and 0 or count - looked
  end
  if total > 0 then event.changed(ctx, "queue:" .. name) end
  return total
end

return M
