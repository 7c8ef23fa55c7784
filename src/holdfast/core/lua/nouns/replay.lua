-- replay: a numbered call that is sent again gets the answer of its first time.
--
-- A line is one caller with one numbered call under way at a time, and its
-- numbers only grow. The line's last number is kept for a minute, with the reply
-- (up to 4 kB) or, for pop, with the jids and tokens that were granted.
local late = require("base.late")
local refuse = require("base.refuse")
local M = {}

local KEEP = 60000 -- ms
local MOST = 4096 -- bytes of a reply that are kept
M.NOTHING = "again" -- kept in place of a longer reply

local call, mp_pack, mp_unpack
late.bind(function() call, mp_pack, mp_unpack = redis.call, cmsgpack.pack, cmsgpack.unpack end)

-- What was kept for this number, or nil if it is new. An older number is a
-- straggler from a cut connection.
function M.find(at, line, number)
  if line == "" then return nil end
  local packed = call("GET", at.keys.line .. line)
  if not packed then return nil end
  local last, kept = mp_unpack(packed)
  if last < number then return nil end
  if last > number then refuse.call("STALE_NUMBER", ("%s is at %.0f, not %.0f"):format(line, last, number)) end
  return kept
end

function M.keep(at, line, number, reply)
  if line == "" then return end
  local packed = mp_pack(number, reply)
  if #packed > MOST then packed = mp_pack(number, M.NOTHING) end
  call("SET", at.keys.line .. line, packed, "PX", KEEP)
end

-- As `keep`, for a pop's grants, which are kept whatever their length.
function M.keep_grants(at, line, number, grants)
  if line == "" then return end
  call("SET", at.keys.line .. line, mp_pack(number, grants), "PX", KEEP)
end

return M
