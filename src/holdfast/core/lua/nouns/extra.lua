-- extra: what a job has beyond its record, in the hash `x:<jid>`. Only jobs that use
-- such a thing pay for it: flag EXTRA says that the hash may exist.
--
-- Fields: t tags, k throttles, o options, s the template it came from, n how many
-- dependencies are open and `>jid` each of them, w the due time kept while they are,
-- h history, e last failure, v data of earlier attempts, p progress, g log tail.
local late = require("base.late")
local record = require("base.record")
local M = {}

local EXTRA = record.FLAG.EXTRA

local call
late.bind(function() call = redis.call end)

-- The bytes of a field, or nil.
function M.get(at, jid, r, field)
  if not record.has(r.flags, EXTRA) then return nil end
  return call("HGET", at.keys.extra .. jid, field) or nil
end

-- The bytes of some fields, as a list (false where there is none).
function M.many(at, jid, ...) return call("HMGET", at.keys.extra .. jid, ...) end

-- Write the record afterwards.
function M.set(at, jid, r, field, bytes)
  call("HSET", at.keys.extra .. jid, field, bytes)
  r.flags = record.with(r.flags, EXTRA)
end

function M.clear(at, jid, r, field)
  if record.has(r.flags, EXTRA) then call("HDEL", at.keys.extra .. jid, field) end
end

return M
