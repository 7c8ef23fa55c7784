-- extra: what a job has beyond its record, in the hash `x:<jid>`. Only jobs that use
-- such a thing pay for it: flag EXTRA is up where the hash may exist.
--
-- Fields: t tags, k throttles, o options, s the template it came from, m the moment of that which it is for, n how many
-- dependencies are open and `>jid` each of them, w the due time kept while they are,
-- h history, e last failure, v data of earlier attempts, p progress, g log tail, c how often it was
-- preempted, u who did not know its code.
local record = require("base.record")
local M = {}

local EXTRA = record.FLAG.EXTRA

-- The bytes of a field, or nil.
function M.get(ctx, jid, r, field)
  if not record.has(r.flags, EXTRA) then return nil end
  return call("HGET", ctx.keys.extra .. jid, field) or nil
end

local function as_bytes(text) return pack(">BHc0", 197, #text, text) end

-- What is noted of a failure, packed again with its texts as bytes: they were not checked
-- to be text, and a reader must not fail on them.
local function failure(packed)
  local group, message, when, worker = unpack_(mp_unpack(packed))
  return "\148" .. as_bytes(group) .. as_bytes(message) .. mp_pack(when) .. as_bytes(worker)
end

-- What a worker gets of a job beside its record, "" for nothing: a packed map of t
-- tags, k throttles, o options, s template, m its moment and e last failure. What is packed is taken as it is.
function M.packed(ctx, jid, r)
  if not record.has(r.flags, EXTRA) then return "" end
  local found = call("HMGET", ctx.keys.extra .. jid, "t", "o", "s", "e", "k", "m")
  local text, count = "", 0
  if found[1] then text, count = "\161t" .. found[1], 1 end
  if found[2] then text, count = text .. "\161o" .. found[2], count + 1 end
  if found[3] then text, count = text .. "\161s" .. mp_pack(found[3]), count + 1 end
  if found[4] then text, count = text .. "\161e" .. failure(found[4]), count + 1 end
  if found[5] then text, count = text .. "\161k" .. found[5], count + 1 end
  if found[6] then text, count = text .. "\161m" .. mp_pack(tonumber(found[6])), count + 1 end
  if count == 0 then return "" end
  return char(128 + count) .. text
end

-- The bytes of some fields, as a list (false where there is none).
function M.many(ctx, jid, ...) return call("HMGET", ctx.keys.extra .. jid, ...) end

-- Write the record afterwards. While `r` has a list `fields`, they are gathered there.
function M.set(ctx, jid, r, field, bytes)
  local fields = r.fields
  if fields then
    local n = #fields
    fields[n + 1], fields[n + 2] = field, bytes
  else
    call("HSET", ctx.keys.extra .. jid, field, bytes)
  end
  r.flags = record.with(r.flags, EXTRA)
end

-- Writes the fields that were gathered.
function M.flush(ctx, jid, r)
  local fields = r.fields
  r.fields = nil
  if fields[1] then call("HSET", ctx.keys.extra .. jid, unpack_(fields)) end
end

function M.clear(ctx, jid, r, field)
  if record.has(r.flags, EXTRA) then call("HDEL", ctx.keys.extra .. jid, field) end
end

return M
