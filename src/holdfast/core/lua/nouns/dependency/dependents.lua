-- dependents: a job has ended, and those that waited for that may go.
--
-- One call releases a limited number. The rest are set apart under the name of the attempt
-- that ended, listed in `u`, and released by later calls: the parent may begin
-- a new life meanwhile, with new children of its own.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local dependency = require("nouns.dependency.dependency")
local touched_jobs = require("nouns.job.touched_jobs")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local PIECE = 512
local BETWEEN = "\t" -- jid and token: no name holds a control character

-- Jobs that may go, by their queue: (jid, record) each, in the order they came.
local function group_of(ctx, groups, name)
  local group = groups[name]
  if not group then
    group = { queue = keys.of_queue(ctx, name), jids = {}, records = {} }
    groups[name] = group
    groups[#groups + 1] = group
  end
  return group
end

-- One that had to wait longer than its parents took.
local function schedule(ctx, jid, r, due)
  local queue = keys.of_queue(ctx, r.queue)
  call("ZREM", queue.depends, jid)
  state.move(r, state.SCHEDULED)
  r.ended = 0
  job.schedule(ctx, queue, jid, due)
  job.write(ctx, jid, r)
end

local function ready(ctx, groups)
  for i = 1, #groups do
    local group = groups[i]
    call("ZREM", group.queue.depends, unpack_(group.jids))
    job.make_many_ready(ctx, group.queue, group.jids, group.records)
  end
end

-- Releases children whose parent is complete. Those in the set `next_life` wait for what
-- it became since: they are not meant.
local function release_children(ctx, parent, children, next_life)
  local groups = {}
  for i = 1, #children, 2 do
    local jid = children[i]
    if not next_life or not call("ZSCORE", next_life, jid) then
      local r, due = dependency.close(ctx, jid, parent)
      if due then
        schedule(ctx, jid, r, due)
      elseif r then
        local group = group_of(ctx, groups, r.queue)
        local n = #group.jids + 1
        group.jids[n], group.records[n] = jid, r
      end
    end
  end
  ready(ctx, groups)
end

-- Whose children are in a set.
function M.parent_of(ctx, set) return match(sub(set, #ctx.keys.dependents + 1), "^[^" .. BETWEEN .. "]+") end

-- Releases up to `most` of the children in a set. Returns how many.
local function release_some(ctx, parent, set, most, next_life)
  local children = call("ZPOPMIN", set, most)
  touched_jobs.took(set, children)
  release_children(ctx, parent, children, next_life)
  return #children / 2
end

local function set_apart(ctx, jid, r, set)
  local entry = ("%s%s%.0f"):format(jid, BETWEEN, r.token)
  call("RENAME", set, ctx.keys.dependents .. entry)
  -- Behind others the flag is up already.
  if call("RPUSH", ctx.keys.releasing, entry) == 1 then root.set_flag(ctx, root.RELEASING, true) end
end

-- A job is complete: its children are released, as many as the call has left.
function M.released(ctx, jid, r)
  r.flags = record.without(r.flags, record.FLAG.DEPENDENTS)
  local set, most = ctx.keys.dependents .. jid, ctx.bounds.released
  if not most then -- as many as there are
    repeat until release_some(ctx, jid, set, PIECE) < PIECE
    return
  end
  local left = most - ctx.released
  local released = left > 0 and release_some(ctx, jid, set, left) or 0
  ctx.released = ctx.released + released
  if released == left and call("EXISTS", set) == 1 then set_apart(ctx, jid, r, set) end
end

-- A job failed, or is going to be deleted: those that waited for any end of it are released. A job has one such child
-- at most (see `verbs.put_one`), so no call releases many.
function M.released_by_any_end(ctx, jid, r)
  local set = ctx.keys.dependents .. jid
  local children = call("ZRANGE", set, dependency.FOLLOWS, "+inf", "BYSCORE", "LIMIT", 0, PIECE, "WITHSCORES")
  if #children == 0 then return end
  touched_jobs.took(set, children)
  local jids = {}
  for i = 1, #children, 2 do jids[#jids + 1] = children[i] end
  call("ZREM", set, unpack_(jids))
  release_children(ctx, jid, children, nil)
  if call("EXISTS", set) == 0 then r.flags = record.without(r.flags, record.FLAG.DEPENDENTS) end
end

-- Continues where earlier calls stopped.
function M.continue(ctx)
  local left = ctx.bounds.released
  while left > 0 do
    local entry = call("LINDEX", ctx.keys.releasing, 0)
    if not entry then return root.set_flag(ctx, root.RELEASING, false) end
    local parent = match(entry, "^[^" .. BETWEEN .. "]+")
    local next_life = ctx.keys.dependents .. parent
    if call("EXISTS", next_life) == 0 then next_life = nil end
    local released = release_some(ctx, parent, ctx.keys.dependents .. entry, left, next_life)
    if released < left then call("LPOP", ctx.keys.releasing) end
    left = left - released
  end
end

-- The last open parent was let go by hand: the job is ready at once.
function M.by_hand(ctx, jid, r)
  local queue = keys.of_queue(ctx, r.queue)
  call("ZREM", queue.depends, jid)
  job.make_many_ready(ctx, queue, { jid }, { r })
end

return M
