-- dependency: jobs that wait until others are complete.
--
-- A waiting job names its open parents in `x:<jid>` (fields `>parent`, their number in
-- `n`, the due time kept for afterwards in `w`); a parent names its children in the sorted
-- set `d:<jid>`, by when they came. Flags DEPENDING and DEPENDENTS are up while there are any;
-- a job that is DEPENDING is in state `depends`.
--
-- Most children wait until the parent is complete: the value of their field is "". Others have an edge there, which
-- `edge_of` reads: the policy, and where in the data of the child that goes which the parent ended with. The policy is
-- `wait` (until the parent is complete), `run` (for any end of it), `fail` (the child fails if the parent does not
-- complete), or `rescue` (the child runs if the parent does not complete; else it is skipped). The scores of children
-- show the policy, too: those of `fail` lie from `FOLLOWS` on, those of `run` from `RUNS`, those of `rescue` from
-- `RESCUES` on.
--
-- A job may also wait so that it ends as its parents do, instead of being ready: see `ENDS_SO`.
local record = require("base.record")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local DEPENDING, DEPENDENTS, EXTRA = record.FLAG.DEPENDING, record.FLAG.DEPENDENTS, record.FLAG.EXTRA
M.PLACES = "f" -- field of a job whose data have places for what its parents end with
M.OPEN = ">" -- what the field of an open parent begins with

M.MOST = 1000 -- open parents of one job
M.MOST_FOLLOWING = 512 -- children of one job that are concerned by every end of it
M.WAIT, M.RUN, M.FAIL, M.RESCUE = "wait", "run", "fail", "rescue"
M.FOLLOWS, M.RUNS, M.RESCUES = 2 ^ 52, 2 ^ 52 + 2 ^ 51, 2 ^ 52 + 2 ^ 51 + 2 ^ 50

local BAND = { wait = 0, fail = M.FOLLOWS, run = M.RUNS, rescue = M.RESCUES }
-- The field PLACES of a job that ends as its parents do: it has `one` result, or a `list` of theirs, and how
-- long that is kept (ms). That of others is "1".
M.ENDS_SO = "^(%a+) (%d+)$"

-- The score of a child that comes now, among the children of its parent.
function M.score(ctx, edge) return BAND[edge.policy] + ctx.now end

-- An edge as text, and as a table of policy, from (-1: the child gets nothing) and length.
function M.edge_text(edge) return format("%s %d %d", edge.policy, edge.from, edge.length) end

function M.edge_of(text)
  local policy, from, length = match(text, "^(%a+) (-?%d+) (%d+)$")
  return { policy = policy or M.WAIT, from = tonumber(from or -1), length = tonumber(length or 0) }
end

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
function M.waits_for(ctx, jid, parent)
  local edge = call("HGET", ctx.keys.extra .. jid, M.OPEN .. parent)
  return edge and M.edge_of(edge).policy == M.WAIT
end

-- Whether any job waits until this one is complete.
function M.is_needed(ctx, jid, r)
  if not record.has(r.flags, DEPENDENTS) then return false end
  return call("ZRANGE", ctx.keys.dependents .. jid, "-inf", M.FOLLOWS, "BYSCORE", "LIMIT", 0, 1)[1] ~= nil
end

-- The edge between a job and its open parent, as text (nil: there is none), how many parents of it are open, the due
-- time kept for when there is none, and its field PLACES (nil: its data have none for what its parents end with).
function M.edge(ctx, jid, parent)
  local found = call("HMGET", ctx.keys.extra .. jid, M.OPEN .. parent, "n", "w", M.PLACES)
  return found[1] or nil, tonumber(found[2] or nil) or 0, tonumber(found[3] or nil), found[4] or nil
end

-- Takes note that a parent is done, of `count` that are open. Returns the record of a job that waited for this one
-- last.
function M.close(ctx, jid, parent, count)
  local key, field = ctx.keys.extra .. jid, M.OPEN .. parent
  if count > 1 then
    call("HDEL", key, field)
    call("HINCRBY", key, "n", -1)
    return nil
  end
  call("HDEL", key, field, "n", "w", M.PLACES)
  local r = job.read(ctx, jid)
  if not r or not M.is_open(r) then return nil end -- an orphan
  M.settle(ctx, jid, r)
  return r
end

-- A parent was not done after all; `score` is that of the child among its children.
function M.open_again(ctx, jid, parent, score)
  local key, band = ctx.keys.extra .. jid, tonumber(score)
  local policy = band < M.FOLLOWS and M.WAIT or band < M.RUNS and M.FAIL or band < M.RESCUES and M.RUN or M.RESCUE
  -- What it gets of that parent was kept before.
  local edge = M.edge_text({ policy = policy, from = -1, length = 0 })
  if call("HSETNX", key, M.OPEN .. parent, edge) == 1 then call("HSET", key, "n", #M.named(ctx, jid)) end
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
