-- tag: labels of jobs, and which jobs have one.
--
-- A job's tags are a list in its extra field `t`, in the order they were given; the
-- index by tag is ranked by when it was attached, and counts each job once. Some doors take
-- numbers for tags: the list keeps them, the index knows their text.
local late = require("base.late")
local record = require("base.record")
local extra = require("nouns.extra")
local M = {}

local TAGGED = record.FLAG.TAGGED
local ALONE = 4 -- a tag that no other job of the step has is so much heavier

local call, mp_pack, mp_unpack, unpack_
late.bind(function() call, mp_pack, mp_unpack, unpack_ = redis.call, cmsgpack.pack, cmsgpack.unpack, unpack end)

-- The tags of a job, as a list.
function M.of(at, jid, r)
  if not record.has(r.flags, TAGGED) then return {} end
  local packed = extra.get(at, jid, r, "t")
  return packed and mp_unpack(packed) or {}
end

local function enter(at, jid, tag)
  tag = tostring(tag)
  if call("ZADD", at.keys.tagged .. tag, at.now, jid) == 1 then call("ZINCRBY", at.keys.tag_counts, 1, tag) end
end

-- So many jobs less have a tag; one that no job has is forgotten.
local function lower(at, tag, by)
  if by == 0 then return end
  tag = tostring(tag)
  if tonumber(call("ZINCRBY", at.keys.tag_counts, -by, tag)) <= 0 then call("ZREM", at.keys.tag_counts, tag) end
end

local function leave(at, jid, tag) lower(at, tag, call("ZREM", at.keys.tagged .. tag, jid)) end

local function keep(at, jid, r, tags)
  if #tags > 0 then
    extra.set(at, jid, r, "t", mp_pack(tags))
    r.flags = record.with(r.flags, TAGGED)
  elseif record.has(r.flags, TAGGED) then
    extra.clear(at, jid, r, "t")
    r.flags = r.flags - TAGGED
  end
end

-- Gives a job exactly these tags. Write the record afterwards.
function M.set(at, jid, r, tags)
  for _, tag in ipairs(M.of(at, jid, r)) do leave(at, jid, tag) end
  for i = 1, #tags do enter(at, jid, tags[i]) end
  keep(at, jid, r, tags)
end

-- The same for a job that is new, while `groups`, a table, gathers who gets which tag.
function M.give(at, jid, r, tags, groups)
  for i = 1, #tags do
    local entries = groups[tags[i]] or {}
    groups[tags[i]] = entries
    local n = #entries
    entries[n + 1], entries[n + 2] = at.now, jid
  end
  keep(at, jid, r, tags)
end

-- Each tag that was given gets its jobs in one go.
function M.enter_groups(at, groups)
  for tag, entries in pairs(groups) do
    local count = call("ZADD", at.keys.tagged .. tag, unpack_(entries))
    if count > 0 then call("ZINCRBY", at.keys.tag_counts, count, tag) end
  end
end

-- The job's tags are `tags` now: these of them were given just now. Write the record afterwards.
function M.add(at, jid, r, tags, given)
  for i = 1, #given do enter(at, jid, given[i]) end
  keep(at, jid, r, tags)
end

-- The same, after these were taken away. A number and its text are two tags of the list, and
-- one of the index.
function M.remove(at, jid, r, tags, taken)
  local left = {}
  for i = 1, #tags do left[tostring(tags[i])] = true end
  for i = 1, #taken do
    if not left[taken[i]] then leave(at, jid, taken[i]) end
  end
  keep(at, jid, r, tags)
end

-- The job is going to be deleted.
function M.forget(at, jid, r)
  for _, tag in ipairs(M.of(at, jid, r)) do leave(at, jid, tag) end
end

-- Notes with `groups`, a table, that a job is going to be deleted. Returns how heavy its tags are.
function M.collect(at, jid, r, groups)
  local tags = M.of(at, jid, r)
  local weight = #tags
  for i = 1, #tags do
    local jids = groups[tags[i]]
    if not jids then
      jids = {}
      groups[tags[i]], weight = jids, weight + ALONE
    end
    jids[#jids + 1] = jid
  end
  return weight
end

-- Jobs that were collected are deleted: each tag forgets its own in one go.
function M.forget_groups(at, groups)
  for tag, jids in pairs(groups) do lower(at, tag, call("ZREM", at.keys.tagged .. tag, unpack_(jids))) end
end

-- (tag, count) pairs of tags that at least so many jobs have, the most used first.
function M.top(at, least, offset, count)
  return call("ZRANGE", at.keys.tag_counts, "+inf", least, "BYSCORE", "REV", "LIMIT", offset, count, "WITHSCORES")
end

-- How many jobs have a tag.
function M.size(at, tag) return call("ZCARD", at.keys.tagged .. tag) end

-- Their jids by when it was attached, from place to place.
function M.range(at, tag, first, last) return call("ZRANGE", at.keys.tagged .. tag, first, last) end

-- How many jobs have a tag, then a page of their jids.
function M.jobs(at, tag, offset, count)
  local reply = { M.size(at, tag) }
  if count <= 0 then return reply end
  for i, jid in ipairs(M.range(at, tag, offset, offset + count - 1)) do reply[i + 1] = jid end
  return reply
end

return M
