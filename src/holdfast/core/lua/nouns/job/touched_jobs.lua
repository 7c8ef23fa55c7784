-- touched_jobs: jobs that a call may have taken from their places and not put down yet. They are
-- looked at only if the call fails on its way: see `rollback`. Each call begins without any.
local M = {}

local MOST = 2048
local jids, count, is_full, taken, popped = {}, 0, false, nil, nil

-- A call begins: what an earlier one noted (`is_used`) may be of another namespace, or of data that are gone.
M.is_used = false
function M.begin() M.is_used, count, is_full, taken, popped = false, 0, false, nil, nil end

-- A record was read, so it may be about to change.
function M.note(jid)
  if count == MOST then count, is_full = 0, true end
  count = count + 1
  jids[count], M.is_used = jid, true
end

-- (member, score) pairs that were popped from the ready jobs of a queue.
function M.popped(list)
  popped, M.is_used = list, true
end

-- The same of another set.
function M.took(set, list)
  taken, M.is_used = taken or {}, true
  taken[set] = list
end

-- All of it, which is forgotten: jids, what was taken by set, ready jobs or nil.
function M.all()
  local noted, by_set, ready = {}, taken or {}, popped
  for i = 1, is_full and MOST or count do noted[i] = jids[i] end
  M.begin()
  return noted, by_set, ready
end

return M
