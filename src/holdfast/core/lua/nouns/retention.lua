-- retention: completed jobs are kept for a while.
--
-- A list of up to EXACT jobs is exact after each completion; a longer one is trimmed in
-- steps, a little past its limit, so that a completion pays for its share only.
local late = require("base.late")
local root = require("base.root")
local job = require("nouns.job")
local tag = require("nouns.tag")
local M = {}

local STEP = 128 -- jobs dropped at once
local EXACT = 1000

local call, unpack_
late.bind(function() call, unpack_ = redis.call, unpack end)

-- Which of the entries one step drops: until their tags are as heavy as `most`, one at least.
-- Returns the keys to delete and how many entries that is.
local function chosen(at, entries, groups)
  local k = at.keys
  local count = #entries
  local names, n, weight, most = {}, 0, 0, at.bounds.tags
  for i = 1, #entries do
    if weight >= most then
      count = i - 1
      break
    end
    local jid, marked = at.completed.of_entry(at, entries[i])
    n = n + 1
    names[n] = k.job .. jid
    if marked then
      names[n + 1], names[n + 2] = k.extra .. jid, k.body .. jid
      n = n + 2
      local r = job.read(at, jid)
      if r then weight = weight + tag.collect(at, jid, r, groups) end
    end
  end
  return names, count
end

-- Deletes the jobs of some entries, or of the first of them, if they are heavy; `leave`
-- takes as many off the list. Returns how many.
local function delete(at, entries, leave)
  local groups = {}
  local names, dropped = chosen(at, entries, groups)
  leave(at, dropped)
  if next(groups) then tag.forget_groups(at, groups) end
  call("UNLINK", unpack_(names))
  return dropped
end

-- Drops up to `count` jobs from the old end. Returns how many.
local function drop(at, count)
  local entries = at.completed.oldest(at, count)
  if #entries == 0 then return 0 end -- dropped by age in the same call
  return delete(at, entries, at.completed.drop)
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
  local dropped = 0
  for _ = 1, steps do
    local old = at.completed.old(at, at.now - age, STEP)
    if old > 0 then dropped = dropped + drop(at, old) end
    if old < STEP then break end
  end
  return dropped
end

-- The steps that are left to a call that dropped so many.
local function left_of(at, dropped) return at.bounds.steps - math.ceil(dropped / STEP) end

-- One that is not kept at all goes at once, whatever else there is to drop.
local function drop_one(at, jid)
  delete(at, { at.completed.entry(jid, true) }, function() at.completed.take_out(at, jid) end)
end

-- The age of a short list, where the bound does not ask for it anyway. The oldest end that
-- was seen is kept with the keys: none before it is in the list, for ends only grow.
local function short_by_age(at, age, steps)
  if not at.completed.may_be_old(at, age) then return end
  by_age(at, age, steps)
  at.completed.note_first(at)
end

-- After `added` completions that made the list `length` long; `jid` is the one of them, if
-- it is known. Age of a long list is looked at once in so many of them.
function M.trim(at, length, added, jid)
  local age, most = root.history_kept(at)
  if jid and (age <= 0 or most <= 0) then drop_one(at, jid) end
  local slack = most <= EXACT and 0 or at.bounds.slack
  local dropped = (length > most + slack or most <= 0) and by_count(at, length, most) or 0
  if length % at.bounds.ages < added or age <= 0 then
    by_age(at, age, left_of(at, dropped))
  elseif length <= EXACT then
    short_by_age(at, age, left_of(at, dropped))
  end
end

-- For a namespace gone quiet: returns how many it dropped.
function M.sweep(at)
  local age, most = root.history_kept(at)
  local dropped = by_count(at, at.completed.length(at), most)
  return dropped + by_age(at, age, left_of(at, dropped))
end

return M
