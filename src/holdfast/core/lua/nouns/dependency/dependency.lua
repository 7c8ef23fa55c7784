-- dependency: jobs that wait until others are complete.
--
-- A waiting job names its open parents in `x:<jid>` (fields `>parent`, their number in
-- `n`, the due time kept for afterwards in `w`); a parent names its children in the sorted
-- set `d:<jid>`, by when they came. Flags DEPENDING and DEPENDENTS are up while there are any;
-- a job that is DEPENDING is in state `depends`.
--
-- Most children wait until the parent is complete: the value of their field is "". Those that wait for any end of it
-- have ANY_END there, and a score from `FOLLOWS` on.
local record = require("base.record")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local DEPENDING, DEPENDENTS, EXTRA = record.FLAG.DEPENDING, record.FLAG.DEPENDENTS, record.FLAG.EXTRA
M.OPEN = ">" -- what the field of an open parent begins with

M.MOST = 1000 -- open parents of one job
M.ANY_END = "run"
M.FOLLOWS = 2 ^ 52

function M.is_open(r) return record.has(r.flags, DEPENDING) end

-- Names the parents that a job waits for, whatever its flags are, in no order.
function M.named(ctx, jid)
  local found = {}
  for _, field in ipairs(call("HKEYS", ctx.keys.extra .. jid)) do
    if sub(field, 1, 1) == M.OPEN then found[#found + 1] = sub(field, 2) end
  end
  return found
end

-- The open parents of a job, in no order.
function M.parents(ctx, jid, r)
  if not M.is_open(r) then return {} end
  return M.named(ctx, jid)
end

function M.count(ctx, jid, r)
  if not M.is_open(r) then return 0 end
  return tonumber(call("HGET", ctx.keys.extra .. jid, "n") or 0)
end

-- Up to `most` (0: all) of the jobs that wait for this one, the first to come first.
function M.children(ctx, jid, r, most)
  if not record.has(r.flags, DEPENDENTS) then return {} end
  return call("ZRANGE", ctx.keys.dependents .. jid, 0, most - 1)
end

-- How many there are.
function M.dependents(ctx, jid, r)
  return record.has(r.flags, DEPENDENTS) and call("ZCARD", ctx.keys.dependents .. jid) or 0
end

-- Whether `jid` waits until `parent` is complete.
function M.waits_for(ctx, jid, parent) return call("HGET", ctx.keys.extra .. jid, M.OPEN .. parent) == "" end

-- Whether any job waits until this one is complete.
function M.is_needed(ctx, jid, r)
  if not record.has(r.flags, DEPENDENTS) then return false end
  return call("ZRANGE", ctx.keys.dependents .. jid, "-inf", M.FOLLOWS, "BYSCORE", "LIMIT", 0, 1)[1] ~= nil
end

-- Takes note that a parent is done. Returns the record of a job that waited for this one
-- last, and the due time kept for it (nil: none); nothing for any other job.
function M.close(ctx, jid, parent)
  local key, field = ctx.keys.extra .. jid, M.OPEN .. parent
  local found = call("HMGET", key, field, "n", "w")
  if not found[1] then return nil end
  if (tonumber(found[2]) or 0) > 1 then
    call("HDEL", key, field)
    call("HINCRBY", key, "n", -1)
    return nil
  end
  call("HDEL", key, field, "n", "w")
  local r = job.read(ctx, jid)
  if not r or r.state ~= state.DEPENDS then return nil end -- an orphan
  M.settle(ctx, jid, r)
  return r, tonumber(found[3] or nil)
end

-- A parent was not done after all; `score` is that of the child among its children.
function M.open_again(ctx, jid, parent, score)
  local key, until_ = ctx.keys.extra .. jid, tonumber(score) < M.FOLLOWS and "" or M.ANY_END
  if call("HSETNX", key, M.OPEN .. parent, until_) == 1 then call("HSET", key, "n", #M.named(ctx, jid)) end
end

-- A job waits for no other any more. A hash that is empty now is not looked for again.
function M.settle(ctx, jid, r)
  r.flags = record.without(r.flags, DEPENDING)
  if call("EXISTS", ctx.keys.extra .. jid) == 0 then r.flags = record.without(r.flags, EXTRA) end
end

-- Holds a job back until its parents are complete; a delay is kept for then, one that was
-- kept before is not.
function M.hold_back(ctx, queue, jid, r, delay)
  if delay > 0 then
    call("HSET", ctx.keys.extra .. jid, "w", ("%.17g"):format(ctx.now + delay))
  elseif r.state == state.DEPENDS then
    call("HDEL", ctx.keys.extra .. jid, "w")
  end
  state.move(r, state.DEPENDS)
  call("ZADD", queue.depends, ctx.now, jid)
end

-- A job that waits is going to be deleted: its parents forget it, but those in `spared`,
-- which are deleted too.
function M.leave(ctx, jid, r, spared)
  for _, parent in ipairs(M.parents(ctx, jid, r)) do
    if not spared[parent] then call("ZREM", ctx.keys.dependents .. parent, jid) end
  end
end

return M
