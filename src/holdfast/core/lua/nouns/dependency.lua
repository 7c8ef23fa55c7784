-- dependency: jobs that wait until others are complete.
--
-- A waiting job names its open parents in `x:<jid>` (fields `>parent`, their number in
-- `n`); a parent names its children in the set `d:<jid>`. Flags DEPENDING and
-- DEPENDENTS say that there are any.
local late = require("base.late")
local record = require("base.record")
local refuse = require("base.refuse")
local job = require("nouns.job")
local state = require("nouns.state")
local M = {}

local DEPENDING, DEPENDENTS = record.FLAG.DEPENDING, record.FLAG.DEPENDENTS
local OPEN = ">"

local call, sub
late.bind(function() call, sub = redis.call, string.sub end)

function M.is_open(r) return record.has(r.flags, DEPENDING) end

-- The open parents of a job, in no order.
function M.parents(at, jid, r)
  local found = {}
  if not M.is_open(r) then return found end
  for _, field in ipairs(call("HKEYS", at.keys.extra .. jid)) do
    if sub(field, 1, 1) == OPEN then found[#found + 1] = sub(field, 2) end
  end
  return found
end

-- Up to about so many of the jobs that wait for this one, in no order.
function M.children(at, jid, r, most)
  local found, seen, cursor = {}, {}, "0"
  if not record.has(r.flags, DEPENDENTS) then return found end
  repeat
    local page = call("SSCAN", at.keys.dependents .. jid, cursor, "COUNT", most)
    cursor = page[1]
    for _, child in ipairs(page[2]) do
      if not seen[child] then found[#found + 1], seen[child] = child, true end
    end
  until cursor == "0" or #found >= most
  return found
end

-- How many parents are still open after one more is done; nil if it was none.
function M.close(at, jid, parent)
  if call("HDEL", at.keys.extra .. jid, OPEN .. parent) == 0 then return nil end
  return call("HINCRBY", at.keys.extra .. jid, "n", -1)
end

-- The last parent is done, or let go: what was kept for that moment goes.
function M.settle(at, jid, r)
  call("HDEL", at.keys.extra .. jid, "n", "w")
  r.flags = record.without(r.flags, DEPENDING)
end

-- Adds parents that exist and are not complete; says how many are new. Write the
-- record afterwards.
function M.add(at, jid, r, parents)
  local added = 0
  for _, parent in ipairs(parents) do
    local p = job.read(at, parent)
    if p and p.state ~= state.COMPLETE and call("HSET", at.keys.extra .. jid, OPEN .. parent, "") == 1 then
      added = added + 1
      call("SADD", at.keys.dependents .. parent, jid)
      if not record.has(p.flags, DEPENDENTS) then
        p.flags = p.flags + DEPENDENTS
        job.write(at, parent, p)
      end
    end
  end
  if added > 0 then
    call("HINCRBY", at.keys.extra .. jid, "n", added)
    r.flags = record.with(record.with(r.flags, DEPENDING), record.FLAG.EXTRA)
  end
  return added
end

-- Lets go of parents. Says whether any is left open.
function M.remove(at, jid, r, parents)
  for _, parent in ipairs(parents) do
    local left = M.close(at, jid, parent)
    if left then
      call("SREM", at.keys.dependents .. parent, jid)
      if left <= 0 then M.settle(at, jid, r) end
    end
  end
  return M.is_open(r)
end

-- Why a job cannot wait for these, or nil. `r` is its record, if it exists.
function M.refusal(_, jid, _, parents)
  for _, parent in ipairs(parents) do
    if parent == jid then return refuse.job("DEPENDENCY_REFUSED", jid .. " cannot wait for itself") end
  end
end

-- A put with parents: earlier ones that are not named again are let go.
function M.replace(at, jid, r, parents)
  local named, gone = {}, {}
  for _, parent in ipairs(parents) do named[parent] = true end
  for _, parent in ipairs(M.parents(at, jid, r)) do
    if not named[parent] then gone[#gone + 1] = parent end
  end
  M.remove(at, jid, r, gone)
  M.add(at, jid, r, parents)
end

-- Sets a job aside until its parents are complete; a delay is kept for then.
function M.park(at, queue, jid, r, delay)
  state.move(r, state.DEPENDS)
  call("ZADD", queue.depends, at.now, jid)
  if delay > 0 then
    call("HSET", at.keys.extra .. jid, "w", ("%.17g"):format(at.now + delay))
  else
    call("HDEL", at.keys.extra .. jid, "w")
  end
end

-- A job that waits is going to be deleted: its parents forget it.
function M.leave(at, jid, r)
  for _, parent in ipairs(M.parents(at, jid, r)) do call("SREM", at.keys.dependents .. parent, jid) end
end

return M
