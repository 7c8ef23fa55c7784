-- tag: labels of jobs, and which jobs have one.
--
-- A job's tags are a list in its extra field `t`, in the order they were given; the
-- index by tag is ranked by when it was attached, and counts each job once.
local late = require("base.late")
local record = require("base.record")
local extra = require("nouns.extra")
local M = {}

local TAGGED = record.FLAG.TAGGED

local call, mp_pack, mp_unpack
late.bind(function() call, mp_pack, mp_unpack = redis.call, cmsgpack.pack, cmsgpack.unpack end)

-- The tags of a job, as a list.
function M.of(at, jid, r)
  if not record.has(r.flags, TAGGED) then return {} end
  local packed = extra.get(at, jid, r, "t")
  return packed and mp_unpack(packed) or {}
end

local function enter(at, jid, tag)
  if call("ZADD", at.keys.tagged .. tag, at.now, jid) == 1 then call("ZINCRBY", at.keys.tag_counts, 1, tag) end
end

local function leave(at, jid, tag)
  if call("ZREM", at.keys.tagged .. tag, jid) == 0 then return end
  if tonumber(call("ZINCRBY", at.keys.tag_counts, -1, tag)) <= 0 then call("ZREM", at.keys.tag_counts, tag) end
end

-- Gives a job exactly these tags. Write the record afterwards.
function M.set(at, jid, r, tags)
  for _, tag in ipairs(M.of(at, jid, r)) do leave(at, jid, tag) end
  for i = 1, #tags do enter(at, jid, tags[i]) end
  if #tags > 0 then
    extra.set(at, jid, r, "t", mp_pack(tags))
    r.flags = record.with(r.flags, TAGGED)
  elseif record.has(r.flags, TAGGED) then
    extra.clear(at, jid, r, "t")
    r.flags = r.flags - TAGGED
  end
end

-- The job is going to be deleted.
function M.forget(at, jid, r)
  for _, tag in ipairs(M.of(at, jid, r)) do leave(at, jid, tag) end
end

return M
