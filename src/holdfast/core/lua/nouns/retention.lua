-- retention: completed jobs are kept for a while, in one list over all queues.
--
-- The list is trimmed in steps, a little past its limit, so that a completion
-- pays for its share only.
local late = require("base.late")
local root = require("base.root")
local job = require("nouns.job")
local tag = require("nouns.tag")
local M = {}

local STEP = 128 -- jobs dropped at once
local LOOKED = 10000 -- entries among which one is looked for
local MARK = "\1"

local call, unpack_, byte, sub
late.bind(function() call, unpack_, byte, sub = redis.call, unpack, string.byte, string.sub end)

-- The entry of a completed job: one with keys beside its record is marked by a
-- byte that no name holds, so that dropping the others needs no look at them.
function M.entry(jid, extra)
  if extra then return MARK .. jid end
  return jid
end

-- The jid of an entry, and whether it is marked.
local function of_entry(entry)
  if byte(entry) == 1 then return sub(entry, 2), true end
  return entry, false
end

local function drop(at, entries)
  local k, names, n = at.keys, {}, 0
  for i = 1, #entries do
    local jid, marked = of_entry(entries[i])
    n = n + 1
    names[n] = k.job .. jid
    if marked then
      names[n + 1], names[n + 2] = k.extra .. jid, k.body .. jid
      n = n + 2
      local r = job.read(at, jid)
      if r then tag.forget(at, jid, r) end
    end
  end
  call("UNLINK", unpack_(names))
end

-- Drops from the old end what is over the number kept.
local function by_count(at, length, most)
  local over, dropped = length - math.max(most, 0), 0
  for _ = 1, at.bounds.steps do
    if over <= dropped then break end
    local step = over - dropped
    local entries = call("LPOP", at.keys.completed, step < STEP and step or STEP)
    if not entries then break end -- dropped by age in the same call
    drop(at, entries)
    dropped = dropped + #entries
  end
  return dropped
end

-- Drops from the old end what is too old.
local function by_age(at, age)
  local limit, dropped = at.now - age, 0
  local oldest = call("LINDEX", at.keys.completed, 0)
  local first = oldest and job.read(at, (of_entry(oldest)))
  if not oldest or first and first.ended > limit then return 0 end
  for _ = 1, at.bounds.steps do
    local old = 0
    for _, entry in ipairs(call("LRANGE", at.keys.completed, 0, STEP - 1)) do
      local r = job.read(at, (of_entry(entry)))
      if r and r.ended > limit then break end
      old = old + 1
    end
    if old > 0 then drop(at, call("LPOP", at.keys.completed, old)) end
    dropped = dropped + old
    if old < STEP then break end
  end
  return dropped
end

-- Takes a job that is put again out of the list; it is usually near its new end.
function M.take_out(at, jid)
  if call("LREM", at.keys.completed, -1, jid) == 0 then call("LREM", at.keys.completed, -1, MARK .. jid) end
end

-- Jids, newest first: those at places `first` to `last`, of which the oldest is -1.
function M.range(at, first, last)
  local entries, jids = call("LRANGE", at.keys.completed, -last - 1, -first - 1), {}
  for i = #entries, 1, -1 do jids[#jids + 1] = (of_entry(entries[i])) end
  return jids
end

-- Jids, newest first.
function M.list(at, offset, count) return M.range(at, offset, offset + count - 1) end

-- The place, from the newest as 0, of a job that was at `place` when it was read. Others
-- completed since: it is looked for a while; a job that is not found has kept its place.
local function place_now(at, place, jid)
  for _, entry in ipairs({ jid, MARK .. jid }) do
    local found = call("LPOS", at.keys.completed, entry, "RANK", -1, "MAXLEN", LOOKED)
    if found then return call("LLEN", at.keys.completed) - 1 - found end
  end
  return place
end

-- (jid, place) pairs, newest first, at most `count`: those older than the job read at
-- `place` (nil: from the newest).
function M.page(at, place, jid, count)
  local first, page = place and place_now(at, place, jid) + 1 or 0, {}
  for i, found in ipairs(M.list(at, first, count)) do page[2 * i - 1], page[2 * i] = found, first + i - 1 end
  return page
end

-- After `added` completions that made the list `length` long. Age is looked at
-- once in so many of them.
function M.trim(at, length, added)
  local age, most = root.history_kept(at)
  if length > most + at.bounds.slack or most <= 0 then by_count(at, length, most) end
  if length % at.bounds.ages < added or age <= 0 then by_age(at, age) end
end

-- For a namespace gone quiet: returns how many it dropped.
function M.sweep(at)
  local age, most = root.history_kept(at)
  return by_age(at, age) + by_count(at, call("LLEN", at.keys.completed), most)
end

return M
