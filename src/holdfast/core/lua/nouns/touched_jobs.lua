-- touched_jobs: jobs that a call may have taken from their places and not put down yet. They are
-- looked at only if the call fails on its way: see `put_right`.
local M = {}

local MOST = 2048
local jids, count, taken, popped = {}, 0, {}, nil

-- A record was read, so it may be about to change.
function M.note(jid)
  count = count < MOST and count + 1 or 1
  jids[count] = jid
end

-- (member, score) pairs that were popped from the ready jobs of a queue.
function M.popped(list) popped = list end

-- The same of another set.
function M.took(set, list) taken[set] = list end

-- All of it, which is forgotten: jids, what was taken by set, ready jobs or nil.
function M.all()
  local noted, by_set, ready = jids, taken, popped
  jids, count, taken, popped = {}, 0, {}, nil
  return noted, by_set, ready
end

return M
