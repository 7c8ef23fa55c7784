-- retention: completed jobs are kept for a while.
--
-- A list of up to EXACT jobs is exact after each completion; a longer one is trimmed in
-- steps, a little past its limit, so that a completion pays for its share only.
local root = require("base.root")
local job = require("nouns.job.job")
local tag = require("nouns.job.tag")
local M = {}

local STEP = 128 -- jobs dropped at once
local EXACT = 1000

-- Which of the entries one step drops: until their tags are as heavy as `most`, one at least.
-- Returns the keys to delete and how many entries that is.
local function chosen(ctx, entries, groups)
  local k = ctx.keys
  local count = #entries
  local names, n, weight, most = {}, 0, 0, ctx.bounds.tags
  for i = 1, #entries do
    if weight >= most then
      count = i - 1
      break
    end
    local jid, marked = ctx.completed.of_entry(ctx, entries[i])
    n = n + 1
    names[n] = k.job .. jid
    if marked then
      names[n + 1], names[n + 2] = k.extra .. jid, k.body .. jid
      n = n + 2
      local r = job.read(ctx, jid)
      if r then weight = weight + tag.collect(ctx, jid, r, groups) end
    end
  end
  return names, count
end

-- Deletes the jobs of some entries, or of the first of them, if they are heavy; `leave`
-- takes as many off the list. Returns how many.
local function delete(ctx, entries, leave)
  local groups = {}
  local names, dropped = chosen(ctx, entries, groups)
  leave(ctx, dropped)
  if next(groups) then tag.forget_groups(ctx, groups) end
  call("UNLINK", unpack_(names))
  return dropped
end

-- Drops up to `count` jobs from the old end. Returns how many.
local function drop(ctx, count)
  local entries = ctx.completed.oldest(ctx, count)
  if #entries == 0 then return 0 end -- dropped by age in the same call
  return delete(ctx, entries, ctx.completed.drop)
end

-- Drops from the old end what is over the number kept.
local function by_count(ctx, length, most)
  local over, dropped = length - math.max(most, 0), 0
  for _ = 1, ctx.bounds.steps do
    if over <= dropped then break end
    local step = over - dropped
    local gone = drop(ctx, step < STEP and step or STEP)
    if gone == 0 then break end
    dropped = dropped + gone
  end
  return dropped
end

-- Drops from the old end what is too old, in `steps` steps.
local function by_age(ctx, age, steps)
  local dropped = 0
  for _ = 1, steps do
    local old = ctx.completed.old(ctx, ctx.now - age, STEP)
    if old > 0 then dropped = dropped + drop(ctx, old) end
    if old < STEP then break end
  end
  return dropped
end

-- The steps that are left to a call that dropped `dropped` jobs.
local function left_of(ctx, dropped) return ctx.bounds.steps - math.ceil(dropped / STEP) end

-- One that is not kept at all goes at once, whatever else there is to drop.
local function drop_one(ctx, jid)
  delete(ctx, { ctx.completed.entry(jid, true) }, function() ctx.completed.remove(ctx, jid) end)
end

-- The age of a short list, where the bound does not ask for it anyway. The oldest end that
-- was seen is kept with the keys: none before it is in the list, for ends only grow.
local function short_by_age(ctx, age, steps)
  if not ctx.completed.may_be_old(ctx, age) then return end
  by_age(ctx, age, steps)
  ctx.completed.note_first(ctx)
end

-- After `added` completions that made the list `length` long; `jid` is the one of them, if
-- it is known. The age of a long list is looked at only now and then.
function M.trim(ctx, length, added, jid)
  local age, most = root.history_kept(ctx)
  if jid and (age <= 0 or most <= 0) then drop_one(ctx, jid) end
  local slack = most <= EXACT and 0 or ctx.bounds.retention_slack
  local dropped = (length > most + slack or most <= 0) and by_count(ctx, length, most) or 0
  if length % ctx.bounds.ages < added or age <= 0 then
    by_age(ctx, age, left_of(ctx, dropped))
  elseif length <= EXACT then
    short_by_age(ctx, age, left_of(ctx, dropped))
  end
end

-- For a namespace gone quiet: returns how many it dropped.
function M.sweep(ctx)
  local age, most = root.history_kept(ctx)
  local dropped = by_count(ctx, ctx.completed.length(ctx), most)
  return dropped + by_age(ctx, age, left_of(ctx, dropped))
end

return M
