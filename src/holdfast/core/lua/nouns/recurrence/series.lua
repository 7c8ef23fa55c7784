-- series: samples of one day as count, mean and variance, and by how long they are.
--
-- Two scales: the protocol's 148 buckets, and a finer one with four buckets per power
-- of two from 1 ms up.
local M = {}

local PIECE = 64 -- samples unpacked at once

-- The protocol's bucket of `seconds` (0 to 147), nil from seven days up.
local function coarse(seconds)
  if seconds < 60 then return floor(seconds) end
  if seconds < 3600 then return 59 + floor(seconds / 60) end
  if seconds < 86400 then return 118 + floor(seconds / 3600) end
  if seconds < 604800 then return 141 + floor(seconds / 86400) end
end

local function fine(ms)
  local m, e = frexp(ms + 1)
  return e * 4 + floor(m * 8)
end

-- Both buckets of the short times, by their ms: looked up, not worked out.
local SHORT = 4096
local coarse_of, fine_of = {}, {}

local function buckets_of(ms)
  local in_fine = fine_of[ms]
  if in_fine then return coarse_of[ms], in_fine end
  local in_coarse = coarse(ms / 1000)
  in_fine = fine(ms)
  if ms < SHORT and ms % 1 == 0 then coarse_of[ms], fine_of[ms] = in_coarse, in_fine end
  return in_coarse, in_fine
end

-- Adds samples by the protocol's streaming formulas, in order.
local function add_many(series, ...)
  local count, mean, spread = series.count, series.mean, series.spread
  local buckets, scale = series.buckets, series.fine
  local samples, last, in_coarse, in_fine = { ... }, nil, nil, nil
  for i = 1, #samples - 1 do -- the last one is the place behind the samples
    local ms = samples[i]
    if ms < 0 then ms = 0 end
    local x, old = ms / 1000, mean
    count = count + 1
    mean = old + (x - old) / count
    spread = spread + (x - mean) * (x - old)
    if ms ~= last then
      last = ms
      in_coarse, in_fine = buckets_of(ms)
    end
    if in_coarse then buckets[in_coarse] = (buckets[in_coarse] or 0) + 1 end
    scale[in_fine] = (scale[in_fine] or 0) + 1
  end
  series.count, series.mean, series.spread = count, mean, spread
end

local function add_log(series, log)
  for first = 1, #log, 8 * PIECE do
    local last = first + 8 * PIECE - 1
    if last > #log then last = #log end
    add_many(series, unpack_bytes(rep("d", (last - first + 1) / 8), log, first))
  end
end

local function unpacked(packed)
  if not packed then return { count = 0, mean = 0, spread = 0, buckets = {}, fine = {} } end
  local flat = mp_unpack(packed)
  local count, mean, spread = unpack_bytes("<ddd", flat[1])
  local series = { count = count, mean = mean, spread = spread, buckets = {}, fine = {} }
  for i = 1, #flat[2], 2 do series.buckets[flat[2][i]] = flat[2][i + 1] end
  for i = 1, #flat[3], 2 do series.fine[flat[3][i]] = flat[3][i + 1] end
  return series
end

function M.load(key, field) return unpacked(call("HGET", key, field)) end

-- How many samples packed bytes (or false) stand for.
function M.count(packed) return packed and (unpack_bytes("<d", mp_unpack(packed)[1])) or 0 end

local function pairs_of(map)
  local flat, n = {}, 0
  for index, count in pairs(map) do
    flat[n + 1], flat[n + 2] = index, count
    n = n + 2
  end
  return flat
end

-- Moves the samples of a log to where those of its day are kept.
function M.fold(log_key, key, field)
  local log = call("GET", log_key)
  if not log then return end
  local series = M.load(key, field)
  add_log(series, log)
  call("HSET", key, field, mp_pack({ pack("<ddd", series.count, series.mean, series.spread),
    pairs_of(series.buckets), pairs_of(series.fine) }))
  call("UNLINK", log_key)
end

-- The series with a log that is not folded yet, without writing anything.
function M.look(log_key, key, field)
  local series, log = M.load(key, field), call("GET", log_key)
  if log then add_log(series, log) end
  return series
end

return M
