-- throttle_reqless: throttles that keep a set of the jobs holding their slots, and a set of
-- those waiting for one. Any throttle may bind any job.
--
-- Flag THROTTLED: slots may be held. A queue's own throttle is a throttle like others.
-- A maximum lies where other programs write it too, so it is read at each use.
local record = require("base.record")
local config = require("nouns.setting.config")
local job = require("nouns.job.job")
local definition = require("nouns.throttle.throttle_definition")
local waiting = require("nouns.throttle.throttle_waiting")
local M = {}

local THROTTLED, NO_LIMIT = record.FLAG.THROTTLED, definition.NO_LIMIT
local RELEASED = 10 -- jobs that a release without a limit lets go

-- The maximum, and for how many seconds (-1: no end, -2: not defined). A text that is no
-- number counts as no limit.
function M.definition(ctx, id)
  local key = ctx.keys.throttle .. id
  local most = tonumber(call("HGET", key, "maximum") or 0)
  return most == most and most or 0, call("TTL", key)
end

local function free_slots(ctx, id)
  local text = call("HGET", ctx.keys.throttle .. id, "maximum")
  local most = text and tonumber(text) or 0
  if most == 0 or most ~= most then return NO_LIMIT end
  return most - call("ZCARD", ctx.keys.holders .. id)
end

M.hold_back, M.assign = waiting.hold_back, definition.assign

-- The throttle that a job which is put finds full, or nil.
function M.is_full(ctx, queue, jid, r)
  return definition.first_full(ctx, definition.ids(ctx, queue, jid, r), free_slots)
end

-- A throttled job is put elsewhere or deleted.
function M.remove(ctx, queue, jid, r) waiting.remove(ctx, queue, jid, definition.ids(ctx, queue, jid, r)) end

-- A job whose lease was lost keeps its slots.
function M.keep() end

-- For a pop: the free slots of the queue's own throttle.
function M.room(ctx, queue, grant)
  grant.limited, grant.room = true, free_slots(ctx, queue.own)
  return grant.room
end

-- All slots a job needs, or none: then it is held back. Returns whether it is.
function M.take(ctx, queue, jid, r, grant)
  local ids = definition.ids(ctx, queue, jid, r)
  local full = definition.first_full(ctx, ids, free_slots, not ids.bare and grant.room)
  if full then
    M.hold_back(ctx, queue, jid, r, full)
    job.write(ctx, jid, r)
    return true
  end
  for i = 1, #ids do call("ZADD", ctx.keys.holders .. ids[i], "0", jid) end
  r.flags = record.with(r.flags, THROTTLED)
  if not ids.bare then grant.room = grant.room - 1 end
end

-- More rounds, where the first found jobs that had to be held back.
local function more(ctx, queue, grant, want, ready)
  local all = 0
  for _ = 2, config.of_queue(ctx, queue.name, "max-pop-retry") do
    local got, seen = ready(ctx, queue, grant, want - all)
    all = all + got
    if all == want or seen == 0 then break end
  end
  return all
end

-- `ready` looks at up to `want` jobs. Returns how many it granted, and how many it saw.
M.by_round = true
function M.grant(ctx, queue, grant, want, room, ready)
  if room < 1 then return 0 end
  local got, seen = ready(ctx, queue, grant, want)
  if got == want or seen == 0 then return got end
  return got + more(ctx, queue, grant, want - got, ready)
end

-- One throttle's slot comes back, or the job waits for it no more.
function M.release_one(ctx, id, jid)
  if call("ZREM", ctx.keys.holders .. id, jid) == 0 then call("ZREM", ctx.keys.pending .. id, jid) end
  if call("EXISTS", ctx.keys.pending .. id) == 0 then return end
  local free = free_slots(ctx, id)
  waiting.promote(ctx, id, free == NO_LIMIT and RELEASED or free)
end

-- The lease ended, or the job is deleted.
function M.release(ctx, queue, jid, r)
  r.flags = record.without(r.flags, THROTTLED)
  local ids = definition.ids(ctx, queue, jid, r)
  for i = 1, #ids do M.release_one(ctx, ids[i], jid) end
end

-- A new maximum as text, for `span` ms (0: its end stays unchanged).
function M.set(ctx, id, maximum, span)
  local key = ctx.keys.throttle .. id
  call("HSET", key, "id", id, "maximum", maximum)
  if span > 0 then call("PEXPIRE", key, span) end
  M.offer(ctx, id)
end

-- Deletes the limit; jobs that hold a slot keep it.
function M.delete(ctx, id)
  call("UNLINK", ctx.keys.throttle .. id)
  M.offer(ctx, id)
end

-- An empty queue is forgotten; its limit is not the queue's.
function M.forget() end

-- The sets of the jobs that hold a slot and of those that wait for one.
function M.sets(ctx, id) return ctx.keys.holders .. id, ctx.keys.pending .. id end

-- Lets pending jobs go, as many as there are slots.
function M.offer(ctx, id)
  local pending = ctx.keys.pending .. id
  if call("EXISTS", pending) == 0 then return end
  local free = free_slots(ctx, id)
  waiting.promote(ctx, id, free == NO_LIMIT and call("ZCARD", pending) or free)
end

return M
