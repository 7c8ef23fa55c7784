-- tag: labels of jobs, and which jobs have one.
--
-- A job's tags are a list in its extra field `t`, in the order they were given; the
-- index by tag is ranked by when it was attached, and counts each job once. Some doors take
-- numbers for tags: the list keeps them, the index knows their text.
local record = require("base.record")
local extra = require("nouns.job.extra")
local M = {}

local TAGGED = record.FLAG.TAGGED
local ALONE = 4 -- a tag that no other job of the step has is so much heavier

-- The tags of a job, as a list.
function M.of(ctx, jid, r)
  if not record.has(r.flags, TAGGED) then return {} end
  local packed = extra.get(ctx, jid, r, "t")
  return packed and mp_unpack(packed) or {}
end

local function enter(ctx, jid, tag)
  tag = tostring(tag)
  if call("ZADD", ctx.keys.tagged .. tag, ctx.now, jid) == 1 then call("ZINCRBY", ctx.keys.tag_counts, 1, tag) end
end

-- `by` jobs less have a tag; one that no job has is forgotten.
local function lower(ctx, tag, by)
  if by == 0 then return end
  tag = tostring(tag)
  if tonumber(call("ZINCRBY", ctx.keys.tag_counts, -by, tag)) <= 0 then call("ZREM", ctx.keys.tag_counts, tag) end
end

local function leave(ctx, jid, tag) lower(ctx, tag, call("ZREM", ctx.keys.tagged .. tag, jid)) end

local function keep(ctx, jid, r, tags)
  if #tags > 0 then
    extra.set(ctx, jid, r, "t", mp_pack(tags))
    r.flags = record.with(r.flags, TAGGED)
  elseif record.has(r.flags, TAGGED) then
    extra.clear(ctx, jid, r, "t")
    r.flags = r.flags - TAGGED
  end
end

-- Gives a job exactly these tags. Write the record afterwards.
function M.set(ctx, jid, r, tags)
  for _, tag in ipairs(M.of(ctx, jid, r)) do leave(ctx, jid, tag) end
  for i = 1, #tags do enter(ctx, jid, tags[i]) end
  keep(ctx, jid, r, tags)
end

-- The same for a job that is new, while `groups`, a table, gathers who gets which tag.
function M.plan(ctx, jid, r, tags, groups)
  for i = 1, #tags do
    local entries = groups[tags[i]] or {}
    groups[tags[i]] = entries
    local n = #entries
    entries[n + 1], entries[n + 2] = ctx.now, jid
  end
  keep(ctx, jid, r, tags)
end

-- Each tag that was given gets its jobs in one go.
function M.enter_groups(ctx, groups)
  for tag, entries in pairs(groups) do
    local count = call("ZADD", ctx.keys.tagged .. tag, unpack_(entries))
    if count > 0 then call("ZINCRBY", ctx.keys.tag_counts, count, tag) end
  end
end

-- The job's tags are `tags` now: these of them were given just now. Write the record afterwards.
function M.add(ctx, jid, r, tags, given)
  for i = 1, #given do enter(ctx, jid, given[i]) end
  keep(ctx, jid, r, tags)
end

-- The same, after these were taken away. A number and its text are two tags of the list, and
-- one of the index.
function M.remove(ctx, jid, r, tags, taken)
  local left = {}
  for i = 1, #tags do left[tostring(tags[i])] = true end
  for i = 1, #taken do
    if not left[taken[i]] then leave(ctx, jid, taken[i]) end
  end
  keep(ctx, jid, r, tags)
end

-- The job is going to be deleted.
function M.forget(ctx, jid, r)
  for _, tag in ipairs(M.of(ctx, jid, r)) do leave(ctx, jid, tag) end
end

-- Notes with `groups`, a table, that a job is going to be deleted. Returns how heavy its tags are.
function M.collect(ctx, jid, r, groups)
  local tags = M.of(ctx, jid, r)
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
function M.forget_groups(ctx, groups)
  for tag, jids in pairs(groups) do lower(ctx, tag, call("ZREM", ctx.keys.tagged .. tag, unpack_(jids))) end
end

-- (tag, count) pairs of tags that at least `least` jobs have, the most used first.
function M.top(ctx, least, offset, count)
  return call("ZRANGE", ctx.keys.tag_counts, "+inf", least, "BYSCORE", "REV", "LIMIT", offset, count, "WITHSCORES")
end

-- How many jobs have a tag.
function M.size(ctx, tag) return call("ZCARD", ctx.keys.tagged .. tag) end

-- Their jids by when it was attached, from place to place.
function M.range(ctx, tag, first, last) return call("ZRANGE", ctx.keys.tagged .. tag, first, last) end

-- How many jobs have a tag, then a page of their jids.
function M.jobs(ctx, tag, offset, count)
  local reply = { M.size(ctx, tag) }
  if count <= 0 then return reply end
  for i, jid in ipairs(M.range(ctx, tag, offset, offset + count - 1)) do reply[i + 1] = jid end
  return reply
end

return M
