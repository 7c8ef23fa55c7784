-- replay: a numbered call that is sent again gets the reply of its first time.
--
-- A line is one caller with one numbered call under way at a time, and its
-- numbers only grow. The line's last number is kept for a minute, with the reply
-- (up to 4 kB) or, for pop, with the jids that were granted. Of a longer reply, which
-- names a code for many jobs, the codes are kept without their details.
local refuse = require("base.refuse")
local M = {}

local KEEP = "60000" -- ms; as text, because turning a number into one costs Redis a quarter of a microsecond
local MOST = 4096 -- bytes of a reply that are kept
M.NOTHING = "again" -- kept in place of a longer reply

-- What was kept for this number as bytes, or nil if it is new. An older number is
-- a straggler from a cut connection.
function M.find(ctx, line, number)
  if line == "" then return nil end
  local packed = call("GET", ctx.keys.line .. line)
  if not packed then return nil end
  local last = unpack_bytes("<d", packed)
  if last < number then return nil end
  if last > number then refuse.call("STALE_NUMBER", ("%s is at %.0f, not %.0f"):format(line, last, number)) end
  return sub(packed, 9)
end

local function keep(ctx, line, number, bytes)
  call("SET", ctx.keys.line .. line, pack("<d", number) .. bytes, "PX", KEEP)
end

-- What is kept of the long reply of a put, [count, (index, code)…]: the count, and by code
-- the indexes.
local function by_code(reply)
  local kept, places = { M.NOTHING, reply[1] }, {}
  for i = 2, #reply, 2 do
    local code = match(reply[i + 1], "^%S+")
    if not places[code] then
      places[code] = {}
      kept[#kept + 1], kept[#kept + 2] = code, places[code]
    end
    places[code][#places[code] + 1] = reply[i]
  end
  return kept
end

-- The reply behind kept bytes; codes of a long one come without details, code by code.
function M.reply(bytes)
  local kept = mp_unpack(bytes)
  if type(kept) ~= "table" or kept[1] ~= M.NOTHING or not kept[2] then return kept end
  local reply = { kept[2] }
  for i = 3, #kept, 2 do
    for _, index in ipairs(kept[i + 1]) do reply[#reply + 1], reply[#reply + 2] = index, kept[i] end
  end
  return reply
end

-- `most` (nil: 4 kB): how many bytes are kept.
function M.keep_reply(ctx, line, number, reply, most)
  if line == "" then return end
  local packed = mp_pack(reply)
  if #packed > (most or MOST) then packed = mp_pack(type(reply[3]) == "string" and by_code(reply) or { M.NOTHING }) end
  keep(ctx, line, number, packed)
end

-- A pop's grants, whatever their number: the time of the pop, then the jids. A
-- job still running for this worker since that moment is the same grant.
function M.keep_grants(ctx, line, number, jids)
  keep(ctx, line, number, pack("<d", ctx.now) .. jids)
end

function M.grants(bytes) return (unpack_bytes("<d", bytes)), sub(bytes, 9) end

return M
