-- named: which throttles bind a job, and how many slots they have.
--
-- A maximum lies where other programs write it too, so it is read at each use. A
-- queue's own throttle is the last of a job's; flag NAMED: the job has others, in
-- field `k` of `x:<jid>`.
local late = require("base.late")
local record = require("base.record")
local M = {}

local NAMED, EXTRA = record.FLAG.NAMED, record.FLAG.EXTRA
M.NO_LIMIT = 1 / 0

local call, mp_pack, mp_unpack
late.bind(function() call, mp_pack, mp_unpack = redis.call, cmsgpack.pack, cmsgpack.unpack end)

-- The throttles of a job, in its order, as a list.
function M.ids(at, queue, jid, r)
  if not record.has(r.flags, NAMED) then return { queue.own } end
  local ids = mp_unpack(call("HGET", at.keys.extra .. jid, "k"))
  ids[#ids + 1] = queue.own
  return ids
end

-- Gives a job the throttles in `ids`, each once and less those of the queues it
-- comes from and goes to. Write the record afterwards.
function M.name(at, queue, jid, r, ids, old)
  local own, seen = {}, { [queue.own] = true, [old or ""] = true }
  for i = 1, #ids do
    local id = tostring(ids[i])
    if not seen[id] then own[#own + 1] = id end
    seen[id] = true
  end
  if #own > 0 then
    call("HSET", at.keys.extra .. jid, "k", mp_pack(own))
    r.flags = record.with(record.with(r.flags, NAMED), EXTRA)
  elseif record.has(r.flags, NAMED) then
    call("HDEL", at.keys.extra .. jid, "k")
    r.flags = r.flags - NAMED
  end
end

-- A text that is no number counts as no limit.
function M.maximum(at, id)
  local most = tonumber(call("HGET", at.keys.throttle .. id, "maximum") or 0)
  return most == most and most or 0
end

-- How many slots are free.
function M.free_slots(at, id)
  local text = call("HGET", at.keys.throttle .. id, "maximum")
  local most = text and tonumber(text) or 0
  if most == 0 or most ~= most then return M.NO_LIMIT end
  return most - call("ZCARD", at.keys.holders .. id)
end

return M
