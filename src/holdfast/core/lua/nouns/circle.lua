-- circle: jobs that would wait, through others, for themselves are refused.
local record = require("base.record")
local refuse = require("base.refuse")
local dependency = require("nouns.dependency")
local M = {}

local MOST = 2000 -- ties one call looks at: about two milliseconds

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

-- Why a job cannot wait for these, or nil. `r` is its record, if it exists: who has no
-- dependents can be in no circle. `walk` counts for all jobs of one call what was looked at.
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
    return refuse.job("DEPENDENCY_REFUSED", "what waits for " .. jid .. " is too large to look for circles")
  end
end

return M
