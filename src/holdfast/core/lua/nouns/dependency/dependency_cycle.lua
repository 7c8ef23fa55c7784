-- dependency_cycle: jobs that would wait, through others, for themselves are refused; and the
-- order in which jobs of one call are put that wait for each other: parents first, wherever they
-- stand in the call, so that a job can wait for one behind it.
local record = require("base.record")
local refuse = require("base.refuse")
local dependency = require("nouns.dependency.dependency")
local M = {}

local MOST = 2000 -- dependencies one call looks at: about two milliseconds

local function new_side(jids, look)
  local side = { edge = jids, seen = {}, look = look }
  for i = 1, #jids do side.seen[jids[i]] = true end
  return side
end

local function above(ctx, jid) return dependency.named(ctx, jid) end

local function below(ctx, jid, left)
  return call("ZRANGE", ctx.keys.dependents .. jid, 0, left < 1 / 0 and left or -1)
end

-- One step away from all that the side reached last. True if the other side was met;
-- `walk.left` falls below zero if there was too much to look at.
local function step(ctx, walk, side, other)
  local edge = {}
  for i = 1, #side.edge do
    local found = side.look(ctx, side.edge[i], walk.left)
    walk.left = walk.left - #found - 1
    if walk.left < 0 then return false end
    for k = 1, #found do
      local jid = found[k]
      if other.seen[jid] then return true end
      if not side.seen[jid] then
        side.seen[jid] = true
        edge[#edge + 1] = jid
      end
    end
  end
  side.edge = edge
  return false
end

-- Whether a way leads up from `parents` to `jid`. Looks from both ends, always where less
-- is to be looked at; where either comes to its end there is none.
local function leads_to(ctx, walk, jid, parents)
  local up, down = new_side(parents, above), new_side({ jid }, below)
  while #up.edge > 0 and #down.edge > 0 and walk.left >= 0 do
    local side, other = up, down
    if #down.edge < #up.edge then side, other = down, up end
    if step(ctx, walk, side, other) then return true end
  end
  return false
end

-- Two jobs that would wait for each other, or one for itself.
function M.between(jid, parent)
  local how = jid == parent and " cannot wait for itself" or " and " .. parent .. " would wait for each other"
  return refuse.job("DEPENDENCY_REFUSED", jid .. how)
end

-- Why a job cannot wait for these, or nil. `r` is its record, if it exists: a job without
-- dependents is in no cycle. `walk.left` counts down
-- what all jobs of one call may look at.
function M.refusal(ctx, walk, jid, r, parents)
  for i = 1, #parents do
    if parents[i] == jid then return M.between(jid, jid) end
  end
  if not r or not record.has(r.flags, record.FLAG.DEPENDENTS) then return nil end
  walk.left = walk.left or ctx.bounds.walk or MOST
  if leads_to(ctx, walk, jid, parents) then
    return refuse.job("DEPENDENCY_REFUSED", jid .. " would wait for itself, through others")
  end
  if walk.left < 0 then
    return refuse.job("DEPENDENCY_REFUSED", "too many jobs wait for " .. jid .. " to check for cycles")
  end
end

local function places_of(jobs)
  local places = {}
  for i = #jobs, 1, -1 do places[jobs[i].jid] = i end
  return places
end

local GOING, DONE = 1, 2

-- Appends a job's parents, then the job itself. One that closes a cycle, or waits for
-- itself, is noted.
local function visit(jobs, places, met, found, i)
  met[i] = GOING
  local parents = jobs[i].opts.depends or {}
  for k = 1, #parents do
    local place = places[parents[k]]
    if place and met[place] == GOING then
      found.cycles[i] = parents[k]
    elseif place and not met[place] then
      visit(jobs, places, met, found, place)
    end
  end
  met[i] = DONE
  found.order[#found.order + 1] = i
end

-- The places of the jobs, parents first, and by place the parent with which a job closes a
-- cycle.
function M.in_order(jobs)
  local places, met, found = places_of(jobs), {}, { order = {}, cycles = {} }
  for i = 1, #jobs do
    if not met[i] then visit(jobs, places, met, found, i) end
  end
  return found.order, found.cycles
end

-- Those of `parents`, and all that they wait for within the call.
function M.beyond(jobs, parents)
  local places, seen, all = places_of(jobs), {}, {}
  local function add(jid)
    if seen[jid] then return end
    seen[jid], all[#all + 1] = true, jid
    local place = places[jid]
    for _, parent in ipairs(place and jobs[place].opts.depends or {}) do add(parent) end
  end
  for i = 1, #parents do add(parents[i]) end
  return all
end

return M
