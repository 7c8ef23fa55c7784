-- completed_reqless: the completed jobs over all queues where the caller brings the time: by
-- when they were completed, whichever was completed first.
local record = require("base.record")
local M = {}

local NO_FLAGS = "\0\0"

-- A job was completed now. Returns how many there are.
function M.add(ctx, jid)
  call("ZADD", ctx.keys.completed, ctx.now, jid)
  return call("ZCARD", ctx.keys.completed)
end

function M.entry(jid) return jid end

-- The jid of an entry, and whether to look for keys beside its record. Its flags show that,
-- and are read without the rest.
function M.of_entry(ctx, entry)
  return entry, call("GETRANGE", ctx.keys.job .. entry, record.FLAGS_FROM, record.FLAGS_TO) ~= NO_FLAGS
end

function M.length(ctx) return call("ZCARD", ctx.keys.completed) end

-- The oldest entries, at most `count`.
function M.oldest(ctx, count) return call("ZRANGE", ctx.keys.completed, 0, count - 1) end

-- Their age is looked at with each completion anyway.
function M.may_be_old() return false end
function M.note_first() end

-- How many of these were completed by `limit`.
function M.old(ctx, limit, count)
  local old = call("ZCOUNT", ctx.keys.completed, "-inf", limit)
  return old < count and old or count
end

-- The oldest `count` leave.
function M.drop(ctx, count) call("ZREMRANGEBYRANK", ctx.keys.completed, 0, count - 1) end

function M.remove(ctx, jid) call("ZREM", ctx.keys.completed, jid) end

-- Whatever keys a job has are found when it is dropped.
function M.keep_together() end

-- Jids, newest first: those at places `first` to `last`, of which the oldest is -1.
function M.range(ctx, first, last) return call("ZRANGE", ctx.keys.completed, first, last, "REV") end

-- Jids, newest first.
function M.list(ctx, offset, count) return M.range(ctx, offset, offset + count - 1) end

-- (jid, place) pairs, newest first, at most `count`: those older than the job read at
-- `place` (nil: from the newest).
function M.page(ctx, place, jid, count)
  local first, page = place and (call("ZREVRANK", ctx.keys.completed, jid) or place) + 1 or 0, {}
  for i, found in ipairs(M.list(ctx, first, count)) do page[2 * i - 1], page[2 * i] = found, first + i - 1 end
  return page
end

return M
