-- named: which throttles bind a job.
--
-- A queue's own throttle is the last of a job's; flag NAMED: the job has others, in
-- field `k` of `x:<jid>`.
local keys = require("base.keys")
local record = require("base.record")
local extra = require("nouns.extra")
local state = require("nouns.state")
local M = {}

local NAMED = record.FLAG.NAMED
local NONE = {}
M.NO_LIMIT = 1 / 0

-- The throttles of a job beside its queue's own, in its order. One of them may be the
-- own one of a queue that the job came to later. A list that is `bare` is all the job
-- has: what its template says may leave out the queue's own.
function M.others(ctx, queue, jid, r)
  if not record.has(r.flags, NAMED) then return NONE end
  local packed = call("HGET", ctx.keys.extra .. jid, "k")
  if not packed then return {} end -- a move took them away and failed then
  local ids = mp_unpack(packed)
  for i = #ids, 1, -1 do
    if ids[i] == queue.own then table.remove(ids, i) end
  end
  return ids
end

-- All throttles of a job.
function M.ids(ctx, queue, jid, r)
  if not record.has(r.flags, NAMED) then return { queue.own } end
  local ids = M.others(ctx, queue, jid, r)
  if not ids.bare then ids[#ids + 1] = queue.own end
  return ids
end

-- Gives a job the throttles in `ids`, each once and less those of the queues it
-- comes from and goes to.
local function name(ctx, queue, jid, r, ids, old)
  local own, seen = { bare = ids.bare }, { [queue.own] = true, [old] = true }
  for i = 1, #ids do
    local id = tostring(ids[i])
    if not seen[id] then own[#own + 1] = id end
    seen[id] = true
  end
  if own[1] or own.bare then
    extra.set(ctx, jid, r, "k", mp_pack(own))
    r.flags = record.with(r.flags, NAMED)
  elseif record.has(r.flags, NAMED) then
    call("HDEL", ctx.keys.extra .. jid, "k")
    r.flags = r.flags - NAMED
  end
  return own
end

-- The throttles of a job that is put (nil: none); `r` still says which queue it comes
-- from, and holds no slot any more. Returns those beside its queue's own. Write the record
-- afterwards.
function M.assign(ctx, queue, jid, r, ids)
  if not ids and not record.has(r.flags, NAMED) then return nil end
  local from = r.state == state.COMPLETE and queue or keys.of_queue(ctx, r.queue) -- a finished job is in none
  return name(ctx, queue, jid, r, ids or NONE, from.own)
end

local function first_of_many(ctx, ids, free_slots, room)
  local count = #ids
  for i = 1, count do
    if (i == count and room or free_slots(ctx, ids[i])) < 1 then return ids[i] end
  end
end

-- The first throttle of several without a free slot, by `free_slots`; of the last one
-- `room` is known, if it is given.
function M.first_full(ctx, ids, free_slots, room)
  if ids[2] or not ids[1] then return first_of_many(ctx, ids, free_slots, room) end
  if (room or free_slots(ctx, ids[1])) < 1 then return ids[1] end
end

return M
