-- throttle_definition: what limit a throttle has, and which throttles a job has.
--
-- A limit is field id of `H`, in roots where no other program writes that; one whose end has
-- come binds no job. A queue's own throttle is the last of a job's; flag NAMED: the job has
-- others, in field `k` of `x:<jid>`.
local keys = require("base.keys")
local record = require("base.record")
local extra = require("nouns.job.extra")
local state = require("nouns.job.state")
local M = {}

local NAMED = record.FLAG.NAMED
local FORM = "<ddd"
M.NEVER, M.MARKED = 1 / 0, -1
M.NO_LIMIT = 1 / 0 -- how many slots are free where there is none
local UNDEFINED = { maximum = 0, ends = M.NEVER, cursor = M.MARKED, is_defined = false }
local NONE = {}

-- maximum (0: none), ends (ms), cursor (how far the jobs that ran before a queue's limit
-- are marked; MARKED: all), is_defined.
function M.read(ctx, id)
  local packed = call("HGET", ctx.keys.limits, id)
  if not packed then return UNDEFINED end
  local maximum, ends, cursor = unpack_bytes(FORM, packed)
  return { maximum = maximum, ends = ends, cursor = cursor, is_defined = true }
end

-- The limit that binds now, 0 for none.
function M.in_force(ctx, id)
  local packed = call("HGET", ctx.keys.limits, id)
  if not packed then return 0 end
  local maximum, ends = unpack_bytes(FORM, packed)
  return ends > ctx.now and maximum or 0
end

function M.write(ctx, id, maximum, ends, cursor)
  call("HSET", ctx.keys.limits, id, pack(FORM, maximum, ends, cursor))
end

-- Returns 1, or 0 if there was no such definition.
function M.delete(ctx, id) return call("HDEL", ctx.keys.limits, id) end

-- [cursor, id …]: the throttles that have a definition.
function M.page(ctx, cursor, count)
  local found = call("HSCAN", ctx.keys.limits, cursor, "COUNT", count)
  local reply, pairs_ = { found[1] }, found[2]
  for i = 1, #pairs_, 2 do reply[#reply + 1] = pairs_[i] end
  return reply
end

-- The throttles of a job beside its queue's own, in its order. One of them may be the
-- own one of a queue that the job came to later. A list that is `bare` is all the job
-- has: the list of its template may leave out the queue's own.
function M.others(ctx, queue, jid, r)
  if not record.has(r.flags, NAMED) then return NONE end
  local packed = call("HGET", ctx.keys.extra .. jid, "k")
  if not packed then return {} end -- a move took them away and failed then
  local ids = mp_unpack(packed)
  for i = #ids, 1, -1 do
    if ids[i] == queue.own then remove(ids, i) end
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

-- The throttles of a job that is put (nil: none); `r` still has the queue it comes
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
