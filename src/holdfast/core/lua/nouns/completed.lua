-- completed: the list of completed jobs over all queues, oldest first.
local late = require("base.late")
local record = require("base.record")
local refuse = require("base.refuse")
local state = require("nouns.state")
local M = {}

local LOOKED = 10000 -- entries among which one is looked for
local FAR = 100000 -- the same for one that is to be marked
local MARK = "\1"

local call, byte, sub
late.bind(function() call, byte, sub = redis.call, string.byte, string.sub end)

-- The entry of a completed job: one with keys beside its record is marked by a
-- byte that no name holds, so that dropping the others needs no look at them.
function M.entry(jid, extra)
  if extra then return MARK .. jid end
  return jid
end

-- The jid of an entry, and whether it is marked.
function M.of_entry(entry)
  if byte(entry) == 1 then return sub(entry, 2), true end
  return entry, false
end

-- Takes a job that is put again out of the list; it is usually near its new end.
function M.take_out(at, jid)
  if call("LREM", at.keys.completed, -1, jid) == 0 then call("LREM", at.keys.completed, -1, MARK .. jid) end
end

-- A completed job is going to get keys beside its record: its entry says so from now on.
-- Refused for one that lies so far back that it is not found in reasonable time.
function M.keep_together(at, jid, r)
  if r.state ~= state.COMPLETE or record.has(r.flags, record.FLAG.EXTRA) then return end
  local far = at.bounds.far or FAR
  local place = call("LPOS", at.keys.completed, jid, "RANK", -1, "MAXLEN", far)
  if place then return call("LSET", at.keys.completed, place, MARK .. jid) end
  if not call("LPOS", at.keys.completed, MARK .. jid, "RANK", -1, "MAXLEN", far) then
    refuse.call("WRONG_STATE", jid .. " was completed too long ago to be given anything")
  end
end

-- Jids, newest first: those at places `first` to `last`, of which the oldest is -1.
function M.range(at, first, last)
  local entries, jids = call("LRANGE", at.keys.completed, -last - 1, -first - 1), {}
  for i = #entries, 1, -1 do jids[#jids + 1] = (M.of_entry(entries[i])) end
  return jids
end

-- Jids, newest first.
function M.list(at, offset, count) return M.range(at, offset, offset + count - 1) end

-- The place, from the newest as 0, of a job that was at `place` when it was read. Others
-- completed since: it is looked for a while; a job that is not found has kept its place.
local function place_now(at, place, jid)
  for _, entry in ipairs({ jid, MARK .. jid }) do
    local found = call("LPOS", at.keys.completed, entry, "RANK", -1, "MAXLEN", LOOKED)
    if found then return call("LLEN", at.keys.completed) - 1 - found end
  end
  return place
end

-- (jid, place) pairs, newest first, at most `count`: those older than the job read at
-- `place` (nil: from the newest).
function M.page(at, place, jid, count)
  local first, page = place and place_now(at, place, jid) + 1 or 0, {}
  for i, found in ipairs(M.list(at, first, count)) do page[2 * i - 1], page[2 * i] = found, first + i - 1 end
  return page
end

return M
