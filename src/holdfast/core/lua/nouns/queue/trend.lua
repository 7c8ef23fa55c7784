-- trend: how often something happened in each of the last 48 hours, in one string:
-- the newest hour since the epoch, then a count an hour, the oldest first.
local M = {}

local HOUR, CELLS, CELL = 3600000, 48, 4 -- ms, hours, bytes
local HEAD = 8 -- bytes of the newest hour
local MOST = 4294967295

-- Returns the newest hour and the cells, shifted to the hour of `now`. A time before the newest
-- hour shifts nothing.
local function moved(packed, now)
  local hour = floor(now / HOUR)
  if not packed or #packed ~= HEAD + CELLS * CELL then return hour, rep("\0", CELLS * CELL) end
  local newest = unpack_bytes("<d", packed)
  local gone = hour - newest
  if gone <= 0 then return newest, sub(packed, HEAD + 1) end
  if gone > CELLS then gone = CELLS end
  return hour, sub(packed, HEAD + 1 + gone * CELL) .. rep("\0", gone * CELL)
end

-- Returns the string (false: none yet) with one more event at `now`. An event older than all
-- cells is not counted.
function M.counted(packed, now)
  local newest, cells = moved(packed, now)
  local place = CELLS - (newest - floor(now / HOUR)) -- 1 is the oldest
  if place >= 1 then
    local from = (place - 1) * CELL
    local count = unpack_bytes("<I4", cells, from + 1)
    if count < MOST then cells = sub(cells, 1, from) .. pack("<I4", count + 1) .. sub(cells, from + CELL + 1) end
  end
  return pack("<d", newest) .. cells
end

-- Appends to a reply when the first cell begins (ms), and the counts of the 48 hours
-- up to `now`.
function M.append(reply, packed, now)
  local newest, cells = moved(packed, now)
  local n = #reply + 1
  reply[n] = (newest - CELLS + 1) * HOUR
  for i = 1, CELLS do reply[n + i] = unpack_bytes("<I4", cells, (i - 1) * CELL + 1) end
end

return M
