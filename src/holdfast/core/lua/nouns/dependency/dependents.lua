-- dependents: a job has ended, and those that waited for that may go.
--
-- One call releases a limited number. The rest are set apart under the name of the attempt
-- that ended, listed in `u`, and released by later calls: the parent may begin
-- a new life meanwhile, with new children of its own.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local dependency = require("nouns.dependency.dependency")
local links = require("nouns.dependency.dependency_links")
local handover = require("nouns.dependency.handover")
local failure = require("nouns.failure.failure")
local members = require("nouns.flow.members")
local touched_jobs = require("nouns.job.touched_jobs")
local job = require("nouns.job.job")
local result = require("nouns.job.result")
local state = require("nouns.job.state")
local M = {}

local PIECE = 512
local BETWEEN = "\t" -- jid and token: no name holds a control character
local RESULT = "\tr" -- behind them: what the attempt ended with

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

-- One parent of a child has ended as the child wants it: see `ending` for `ended`; what the child takes of it may be
-- there already (`is_kept`). Returns the record of a child that waits for no other (or nil), the due time kept for it,
-- and, if it cannot go, what has to become of it instead: it fails (`problem`), is skipped (`why`), or ends with a
-- `result`, kept for `keep` ms.
local function close(ctx, parent, jid, ended)
  local text, count, due, places = dependency.edge(ctx, jid, parent)
  if not text then return nil end
  local edge = text ~= "" and dependency.edge_of(text)
  if edge and edge.policy == dependency.RESCUE and not ended.group and not ended.is_kept then
    return nil, nil, { jid = jid, why = parent .. " is complete" }
  end
  local skips = edge and edge.from >= 0 and handover.skips(ended.result)
  if skips then return nil, nil, { jid = jid, why = skips } end
  local problem = edge and not ended.is_kept and handover.keep(ctx, jid, edge, ended)
  if problem then return nil, nil, { jid = jid, problem = parent .. " has ended, but " .. problem } end
  local kind, keep = match(count <= 1 and places or "", dependency.ENDS_SO)
  if kind then
    local all, reason = handover.all_kept(ctx, jid, kind)
    if reason then return nil, nil, { jid = jid, problem = parent .. " has ended, but " .. reason } end
    dependency.close(ctx, jid, parent, count)
    return nil, nil, { jid = jid, result = all, keep = tonumber(keep) }
  end
  if count <= 1 and places then
    problem = handover.join(ctx, jid)
    if problem then return nil, nil, { jid = jid, problem = problem } end
  end
  return dependency.close(ctx, jid, parent, count), due
end

-- A child may go: it is written, or comes into the groups of those that are ready.
local function release(ctx, groups, jid, r, due)
  if r.state == state.FAILED then
    failure.remove(ctx, jid, r)
    failure.clear(ctx, jid, r)
  elseif r.state ~= state.DEPENDS then
    return -- an orphan
  end
  if due then return schedule(ctx, jid, r, due) end
  local group = group_of(ctx, groups, r.queue)
  local n = #group.jids + 1
  group.jids[n], group.records[n] = jid, r
end

-- Releases children whose parent has ended as they want it; those in the set `next_life` wait for what it became since:
-- they are not meant. Returns what has to become of others: see `close`.
local function release_children(ctx, parent, children, next_life, ended)
  local groups, others = {}, {}
  for i = 1, #children, 2 do
    local jid = children[i]
    if not next_life or not call("ZSCORE", next_life, jid) then
      local r, due, other = close(ctx, parent, jid, ended)
      if r then release(ctx, groups, jid, r, due) end
      others[#others + 1] = other
    end
  end
  ready(ctx, groups)
  return others
end

-- Whose children are in a set.
function M.parent_of(ctx, set) return match(sub(set, #ctx.keys.dependents + 1), "^[^" .. BETWEEN .. "]+") end

-- Releases up to `most` of the children in a set. Returns how many, and what has to become of others.
local function release_some(ctx, parent, set, most, next_life, ended)
  local children = call("ZPOPMIN", set, most)
  touched_jobs.took(set, children)
  return #children / 2, release_children(ctx, parent, children, next_life, ended)
end

local function set_apart(ctx, jid, r, set, ended)
  local entry = ("%s%s%.0f"):format(jid, BETWEEN, r.token)
  call("RENAME", set, ctx.keys.dependents .. entry)
  if ended.result then call("SET", ctx.keys.dependents .. entry .. RESULT, ended.result) end
  -- Behind others the flag is up already.
  if call("RPUSH", ctx.keys.releasing, entry) == 1 then root.set_flag(ctx, root.RELEASING, true) end
end

-- A job is complete: its children are released, as many as the call has left. Returns what has to become of others.
function M.released(ctx, jid, r, ended)
  r.flags = record.without(r.flags, record.FLAG.DEPENDENTS)
  local set, most, others = ctx.keys.dependents .. jid, ctx.bounds.released, nil
  if not most then -- as many as there are
    local count
    repeat count, others = release_some(ctx, jid, set, PIECE, nil, ended) until count < PIECE
    return others
  end
  local left, released = most - ctx.released, 0
  if left > 0 then released, others = release_some(ctx, jid, set, left, nil, ended) end
  ctx.released = ctx.released + released
  if released == left and call("EXISTS", set) == 1 then set_apart(ctx, jid, r, set, ended) end
  return others or {}
end

-- A job failed, or is going to be deleted. Children that wait for any end of it, or for this one, are released. Returns
-- what has to become of others. Where it was skipped, `ended.skipped` is why: what takes its result is skipped, too.
function M.ended(ctx, jid, r, ended)
  local set, chosen, others = ctx.keys.dependents .. jid, {}, {}
  local children = call("ZRANGE", set, dependency.FOLLOWS, "+inf", "BYSCORE", "LIMIT", 0, PIECE, "WITHSCORES")
  for i = 1, #children, 2 do
    local child, score = children[i], tonumber(children[i + 1])
    local is_released = score >= dependency.RUNS and (score < dependency.RESCUES or not ended.skipped)
    if is_released then
      chosen[#chosen + 1], chosen[#chosen + 2] = child, children[i + 1]
    elseif ended.skipped then
      others[#others + 1] = { jid = child, why = ended.skipped }
    else
      others[#others + 1] = { jid = child, problem = handover.reason(jid, ended), parent = jid }
    end
  end
  if not chosen[1] then return others end
  touched_jobs.took(set, chosen)
  for i = 1, #chosen, 2 do call("ZREM", set, chosen[i]) end
  for _, one in ipairs(release_children(ctx, jid, chosen, nil, ended)) do others[#others + 1] = one end
  if call("EXISTS", set) == 0 then r.flags = record.without(r.flags, record.FLAG.DEPENDENTS) end
  return others
end

-- Continues where earlier calls stopped. Returns what has to become of others.
function M.continue(ctx)
  local left, others = ctx.bounds.released, {}
  while left > 0 do
    local entry = call("LINDEX", ctx.keys.releasing, 0)
    if not entry then
      root.set_flag(ctx, root.RELEASING, false)
      return others
    end
    local parent = match(entry, "^[^" .. BETWEEN .. "]+")
    local next_life, set = ctx.keys.dependents .. parent, ctx.keys.dependents .. entry
    if call("EXISTS", next_life) == 0 then next_life = nil end
    local ended = { result = call("GET", set .. RESULT) or nil }
    local released, more = release_some(ctx, parent, set, left, next_life, ended)
    for _, one in ipairs(more) do others[#others + 1] = one end
    if released < left then
      call("LPOP", ctx.keys.releasing)
      call("UNLINK", set .. RESULT)
    end
    left = left - released
  end
  return others
end

-- Why the job of a large group cannot be tried again, or nil.
local function problem_of_group(ctx, jid, r)
  if r.state == state.COMPLETE then return "it stands for a group, and has ended with it" end
  local group = members.read(ctx, members.flow_of(jid) or "")
  local problem = group and members.problem(group)
  if problem or not group or not members.are_over(group) then return problem end
  return select(2, members.gathered(ctx, group))
end

-- Closes the edges of a failed job whose parents have ended as it needs them; it waits for the others again. Returns
-- why it cannot be tried, or nil.
local function close_again(ctx, jid, r)
  for _, parent in ipairs(dependency.parents(ctx, jid, r)) do
    local p, edge = job.read(ctx, parent), dependency.edge_of((dependency.edge(ctx, jid, parent)))
    local is_kept = handover.is_kept(ctx, jid, edge)
    if p and p.state ~= state.COMPLETE and not is_kept then
      links.join_again(ctx, jid, p, edge, parent)
    else
      local ended = { result = result.read(ctx, parent) or nil, is_kept = is_kept }
      local closed, _, other = close(ctx, parent, jid, ended)
      if other then return other.problem or "its parents have ended" end
      if closed then job.write(ctx, jid, closed) end
    end
  end
end

-- A job that has ended is going to be tried again. One that failed for its parents waits for those that are not
-- complete. Returns its record; nil and why not, if it cannot be tried.
function M.look_again(ctx, jid, r)
  local is_group = r.klass == members.KLASS
  if not is_group and not dependency.is_open(r) then return r end
  local problem
  if is_group then problem = problem_of_group(ctx, jid, r) else problem = close_again(ctx, jid, r) end
  if problem then return nil, format("%s cannot be tried again: %s", jid, problem) end
  return is_group and r or job.read(ctx, jid)
end

-- The last open parent was let go by hand: the job is ready at once.
function M.by_hand(ctx, jid, r)
  local queue = keys.of_queue(ctx, r.queue)
  call("ZREM", queue.depends, jid)
  job.make_many_ready(ctx, queue, { jid }, { r })
end

return M
