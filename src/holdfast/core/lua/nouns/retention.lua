-- retention: completed jobs are kept for a while, in one list over all queues.
--
-- The list is trimmed in steps, a little past its limit, so that a completion
-- pays for its share only.
local late = require("base.late")
local record = require("base.record")
local job = require("nouns.job")
local M = {}

local STEP = 128 -- jobs dropped at once

local call, unpack_
late.bind(function() call, unpack_ = redis.call, unpack end)

local function drop(at, jids)
  local k, names = at.keys, {}
  for i = 1, #jids do names[i] = k.job .. jids[i] end
  local found = call("MGET", unpack_(names))
  for i = 1, #jids do
    local r = found[i] and at.record.read(found[i])
    if r and r.flags ~= 0 then
      names[#names + 1] = k.extra .. jids[i]
      if record.has(r.flags, record.FLAG.SPILLED) then names[#names + 1] = k.body .. jids[i] end
    end
  end
  call("UNLINK", unpack_(names))
end

-- Drops from the old end what is over the number kept.
local function by_count(at, length)
  local over = length - at.history_count
  if over <= 0 then return 0 end
  local jids = call("LPOP", at.keys.completed, over < STEP and over or STEP)
  drop(at, jids)
  return #jids
end

-- Drops from the old end what is too old; looks at a step's worth.
local function by_age(at)
  local jids = call("LRANGE", at.keys.completed, 0, STEP - 1)
  local old = {}
  for i = 1, #jids do
    local r = job.read(at, jids[i])
    if r and r.ended > at.now - at.history_age then break end
    old[i] = jids[i]
  end
  if #old == 0 then return 0 end
  call("LPOP", at.keys.completed, #old)
  drop(at, old)
  return #old
end

-- After a completion that made the list `length` long.
function M.trim(at, length)
  local most = at.history_count
  if length > most + at.bounds.slack or most <= 0 then by_count(at, length) end
  if length % 64 == 0 or at.history_age <= 0 then by_age(at) end
end

-- For a namespace gone quiet: returns how many it dropped.
function M.sweep(at)
  local dropped = by_age(at)
  return dropped + by_count(at, call("LLEN", at.keys.completed))
end

return M
