-- family: jobs of one call that wait for each other. Parents come first, wherever they
-- stand in the call, so that a job can wait for one behind it.
local M = {}

local function places_of(jobs)
  local places = {}
  for i = #jobs, 1, -1 do places[jobs[i].jid] = i end
  return places
end

local GOING, DONE = 1, 2

-- Appends a job's parents, then the job itself. One that closes a circle, or waits for
-- itself, is noted.
local function visit(jobs, places, met, found, i)
  met[i] = GOING
  local parents = jobs[i].opts.depends or {}
  for k = 1, #parents do
    local place = places[parents[k]]
    if place and met[place] == GOING then
      found.circles[i] = parents[k]
    elseif place and not met[place] then
      visit(jobs, places, met, found, place)
    end
  end
  met[i] = DONE
  found.order[#found.order + 1] = i
end

-- The places of the jobs, parents first, and by place the parent with which a job closes a
-- circle.
function M.in_order(jobs)
  local places, met, found = places_of(jobs), {}, { order = {}, circles = {} }
  for i = 1, #jobs do
    if not met[i] then visit(jobs, places, met, found, i) end
  end
  return found.order, found.circles
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
