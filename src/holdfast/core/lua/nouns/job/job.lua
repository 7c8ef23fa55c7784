-- job: one record, its body, and the place in a queue that its state names.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local earlier_data = require("nouns.job.earlier_data")
local event = require("nouns.event.event")
local touched_jobs = require("nouns.job.touched_jobs")
local queues = require("nouns.queue.queue")
local state = require("nouns.job.state")
local M = {}

local FLAG = record.FLAG
local SPILL = record.SPILL

function M.read(ctx, jid)
  local bytes = call("GET", ctx.keys.job .. jid)
  if not bytes then return nil end
  touched_jobs.note(jid)
  return ctx.record.read(bytes)
end

-- The records of many jobs by jid, without those that are gone.
function M.read_many(ctx, jids)
  local names, found = {}, {}
  for i = 1, #jids do names[i] = ctx.keys.job .. jids[i] end
  local records = names[1] and call("MGET", unpack_(names)) or {}
  for i = 1, #names do
    if records[i] then
      touched_jobs.note(jids[i])
      found[jids[i]] = ctx.record.read(records[i])
    end
  end
  return found
end

function M.write(ctx, jid, r)
  call("SET", ctx.keys.job .. jid, ctx.record.write(r))
  if ctx.watched then event.changed_job(ctx, jid, r.queue) end
end

function M.body(ctx, jid, r)
  if record.has(r.flags, FLAG.SPILLED) then return call("GET", ctx.keys.body .. jid) or "" end
  return r.body
end

-- Replaces the data; "" leaves it. Write the record afterwards.
function M.set_body(ctx, jid, r, body)
  if body == "" then return end
  if r.attempts > 0 and root.has(ctx, root.KEEPING) then
    local was = M.body(ctx, jid, r)
    if was ~= body then earlier_data.keep(ctx, jid, r, was) end
  end
  if #body > SPILL then
    call("SET", ctx.keys.body .. jid, body)
    r.flags, r.body = record.with(r.flags, FLAG.SPILLED), ""
    return
  end
  if record.has(r.flags, FLAG.SPILLED) then call("UNLINK", ctx.keys.body .. jid) end
  r.flags, r.body = record.without(r.flags, FLAG.SPILLED), body
end

local FROM = {
  [state.WAITING] = "waiting", [state.STALLED] = "waiting", [state.SCHEDULED] = "scheduled",
  [state.DEPENDS] = "depends",
}

-- Takes the job out of the set that its state names (others:
-- `lease.evict`).
function M.remove(ctx, jid, r)
  local queue = keys.of_queue(ctx, r.queue)
  local place = FROM[r.state]
  if place == "waiting" then
    call("ZREM", queue.waiting, ctx.order.member(r, jid))
  elseif place then
    call("ZREM", queue[place], jid)
  elseif r.state == state.THROTTLED then
    ctx.throttles.remove(ctx, queue, jid, r)
    call("ZREM", queue.waiting, ctx.order.member(r, jid))
    state.move(r, state.WAITING) -- so that its history shows if it is held back again
  end
end

-- Makes the job ready at the end of its class, and wakes a worker that may wait.
-- Write the record afterwards. `first` and `idle`: of a sequence number that is taken.
function M.make_ready(ctx, queue, jid, r, first, idle)
  if not first then first, idle = queues.take_sequence(ctx, queue, 1) end
  call("ZADD", queue.waiting, ctx.order.place(r, first + 1, ctx.now, jid))
  if idle then queues.signal(queue) end
end

-- The same for many jobs of one queue, in that order. Writes their records. `since` (nil: now) are the times
-- at which they became ready.
function M.make_many_ready(ctx, queue, jids, records, first, idle, since)
  local count = #jids
  if count == 0 then return end
  if not first then first, idle = queues.take_sequence(ctx, queue, count) end
  local entries, writes = {}, {}
  for i = 1, count do
    local jid, r = jids[i], records[i]
    state.move(r, state.WAITING)
    entries[2 * i - 1], entries[2 * i] = ctx.order.place(r, first + i, ctx.now, jid)
    ctx.record.ready(r, since and since[i] or ctx.now)
    writes[2 * i - 1], writes[2 * i] = ctx.keys.job .. jid, ctx.record.write(r)
  end
  call("ZADD", queue.waiting, unpack_(entries))
  call("MSET", unpack_(writes))
  if idle then queues.signal(queue) end
  if ctx.watched then
    for i = 1, count do event.changed_job(ctx, jids[i], queue.name) end
  end
end

-- Keeps the job until `due`.
function M.schedule(ctx, queue, jid, due)
  call("ZADD", queue.scheduled, due, jid)
  queues.due_at(ctx, queue, due)
end

-- Places a job again: after `delay` ms, or now.
function M.place(ctx, queue, jid, r, delay, first, idle)
  if delay > 0 then
    state.move(r, state.SCHEDULED)
    r.ended = 0
    M.schedule(ctx, queue, jid, ctx.now + delay)
  else
    state.move(r, state.WAITING)
    M.make_ready(ctx, queue, jid, r, first, idle)
    ctx.record.ready(r, ctx.now)
  end
end

-- Deletes the job and all keys of its own.
function M.delete(ctx, jid, r)
  local k = ctx.keys
  if ctx.watched then event.changed_job(ctx, jid, r.queue) end
  if record.is_plain(r.flags) then return call("UNLINK", k.job .. jid) end
  return call("UNLINK", k.job .. jid, k.body .. jid, k.extra .. jid, k.dependents .. jid)
end

return M
