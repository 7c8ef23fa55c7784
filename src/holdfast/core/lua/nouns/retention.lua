-- retention: completed jobs are kept for a while.
--
-- Their list is trimmed in steps, a little past its limit, so that a completion
-- pays for its share only.
local late = require("base.late")
local root = require("base.root")
local completed = require("nouns.completed")
local job = require("nouns.job")
local tag = require("nouns.tag")
local M = {}

local STEP = 128 -- jobs dropped at once

local call, unpack_
late.bind(function() call, unpack_ = redis.call, unpack end)

-- Which of the entries one step drops: until their tags are as heavy as `most`, one at least.
-- Returns the keys to delete and how many entries that is.
local function chosen(at, entries, groups)
  local k, names, n, weight, most = at.keys, {}, 0, 0, at.bounds.tags
  for i = 1, #entries do
    if weight >= most then return names, i - 1 end
    local jid, marked = completed.of_entry(entries[i])
    n = n + 1
    names[n] = k.job .. jid
    if marked then
      names[n + 1], names[n + 2] = k.extra .. jid, k.body .. jid
      n = n + 2
      local r = job.read(at, jid)
      if r then weight = weight + tag.collect(at, jid, r, groups) end
    end
  end
  return names, #entries
end

-- Drops up to `count` jobs from the old end. Returns how many.
local function drop(at, count)
  local entries, groups = call("LRANGE", at.keys.completed, 0, count - 1), {}
  if #entries == 0 then return 0 end -- dropped by age in the same call
  local names, dropped = chosen(at, entries, groups)
  call("LPOP", at.keys.completed, dropped)
  if next(groups) then tag.forget_groups(at, groups) end
  call("UNLINK", unpack_(names))
  return dropped
end

-- Drops from the old end what is over the number kept.
local function by_count(at, length, most)
  local over, dropped = length - math.max(most, 0), 0
  for _ = 1, at.bounds.steps do
    if over <= dropped then break end
    local step = over - dropped
    local gone = drop(at, step < STEP and step or STEP)
    if gone == 0 then break end
    dropped = dropped + gone
  end
  return dropped
end

-- Drops from the old end what is too old, in so many steps.
local function by_age(at, age, steps)
  local limit, dropped = at.now - age, 0
  local oldest = call("LINDEX", at.keys.completed, 0)
  local first = oldest and job.read(at, (completed.of_entry(oldest)))
  if not oldest or first and first.ended > limit then return 0 end
  for _ = 1, steps do
    local old = 0
    for _, entry in ipairs(call("LRANGE", at.keys.completed, 0, STEP - 1)) do
      local r = job.read(at, (completed.of_entry(entry)))
      if r and r.ended > limit then break end
      old = old + 1
    end
    if old > 0 then dropped = dropped + drop(at, old) end
    if old < STEP then break end
  end
  return dropped
end

-- The steps that are left to a call that dropped so many.
local function left_of(at, dropped) return at.bounds.steps - math.ceil(dropped / STEP) end

-- After `added` completions that made the list `length` long. Age is looked at
-- once in so many of them.
function M.trim(at, length, added)
  local age, most = root.history_kept(at)
  local dropped = (length > most + at.bounds.slack or most <= 0) and by_count(at, length, most) or 0
  if length % at.bounds.ages < added or age <= 0 then by_age(at, age, left_of(at, dropped)) end
end

-- For a namespace gone quiet: returns how many it dropped.
function M.sweep(at)
  local age, most = root.history_kept(at)
  local dropped = by_count(at, call("LLEN", at.keys.completed), most)
  return dropped + by_age(at, age, left_of(at, dropped))
end

return M
