-- completed: the list of completed jobs over all queues, oldest first. `ctx.completed` is
-- this file, or `completed_reqless`.
local record = require("base.record")
local refuse = require("base.refuse")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local LOOKED = 10000 -- entries among which one is looked for
local FAR = 100000 -- the same for one that is to be marked
local MARK = "\1"

-- The entry of a completed job: one with keys beside its record is marked by a
-- byte that no name holds, so that dropping the others needs no look at them.
function M.entry(jid, extra)
  if extra then return MARK .. jid end
  return jid
end

-- The jid of an entry, and whether it is marked.
function M.of_entry(_, entry)
  if byte(entry) == 1 then return sub(entry, 2), true end
  return entry, false
end

-- A job was completed now; `extra`: it has keys beside its record. Returns how many there are.
function M.add(ctx, jid, extra) return call("RPUSH", ctx.keys.completed, extra and MARK .. jid or jid) end

function M.length(ctx) return call("LLEN", ctx.keys.completed) end

-- The oldest entries, at most `count`.
function M.oldest(ctx, count) return call("LRANGE", ctx.keys.completed, 0, count - 1) end

local function is_older(ctx, entry, limit)
  local r = job.read(ctx, (M.of_entry(ctx, entry)))
  return not r or r.ended <= limit
end

-- Whether one may be older than that, as far as is known without a look.
function M.may_be_old(ctx, age) return (ctx.keys.oldest_end or -1 / 0) + age <= ctx.now end

-- Notes when the oldest of them ended.
function M.note_first(ctx)
  local first = call("LINDEX", ctx.keys.completed, 0)
  local r = first and job.read(ctx, (M.of_entry(ctx, first)))
  ctx.keys.oldest_end = r and r.ended or ctx.now
end

-- How many of these were completed by `limit`.
function M.old(ctx, limit, count)
  local first = call("LINDEX", ctx.keys.completed, 0)
  if not first or not is_older(ctx, first, limit) then return 0 end
  local entries = M.oldest(ctx, count)
  for i = 2, #entries do
    if not is_older(ctx, entries[i], limit) then return i - 1 end
  end
  return #entries
end

-- The oldest `count` leave.
function M.drop(ctx, count) call("LPOP", ctx.keys.completed, count) end

-- Takes a job that is put again out of the list; it is mostly near the new end of the list.
function M.remove(ctx, jid)
  if call("LREM", ctx.keys.completed, -1, jid) == 0 then call("LREM", ctx.keys.completed, -1, MARK .. jid) end
end

-- A completed job is going to get keys beside its record: its entry is marked from now on.
-- Refused for one that lies so far back that it is not found in reasonable time.
function M.keep_together(ctx, jid, r)
  if r.state ~= state.COMPLETE or record.has(r.flags, record.FLAG.EXTRA) then return end
  local place = call("LPOS", ctx.keys.completed, jid, "RANK", -1, "MAXLEN", FAR)
  if place then return call("LSET", ctx.keys.completed, place, MARK .. jid) end
  if not call("LPOS", ctx.keys.completed, MARK .. jid, "RANK", -1, "MAXLEN", FAR) then
    refuse.call("WRONG_STATE", jid .. " was completed too long ago to be changed")
  end
end

-- Jids, newest first: those at places `first` to `last`, of which the oldest is -1.
function M.range(ctx, first, last)
  local entries, jids = call("LRANGE", ctx.keys.completed, -last - 1, -first - 1), {}
  for i = #entries, 1, -1 do jids[#jids + 1] = (M.of_entry(ctx, entries[i])) end
  return jids
end

-- Jids, newest first.
function M.list(ctx, offset, count) return count > 0 and M.range(ctx, offset, offset + count - 1) or {} end

-- The place, from the newest as 0, of a job that was at `place` when it was read. Others
-- completed since: it is looked for a while; a job that is not found has kept its place.
local function place_now(ctx, place, jid)
  for _, entry in ipairs({ jid, MARK .. jid }) do
    local found = call("LPOS", ctx.keys.completed, entry, "RANK", -1, "MAXLEN", LOOKED)
    if found then return call("LLEN", ctx.keys.completed) - 1 - found end
  end
  return place
end

-- (jid, place) pairs, newest first, at most `count`: those older than the job read at
-- `place` (nil: from the newest).
function M.page(ctx, place, jid, count)
  local first, page = place and place_now(ctx, place, jid) + 1 or 0, {}
  for i, found in ipairs(M.list(ctx, first, count)) do page[2 * i - 1], page[2 * i] = found, first + i - 1 end
  return page
end

return M
