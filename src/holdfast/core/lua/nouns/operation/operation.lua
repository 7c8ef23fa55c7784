-- operation: a change of many jobs that an operator has ordered, and how far it got.
--
-- The hash `O:<id>` has what is done and how far that is; any program may continue it when the one that runs it
-- (`runner`) has not reported for a while. Beside it are, for an hour, the jobs that it changed (`Ou:<id>`, for an
-- undo), and the first jobs that refused (`Or:<id>`).
local refuse = require("base.refuse")
local event = require("nouns.event.event")
local M = {}

local MOST, MOST_REFUSED, UNDO = 100, 100, 3600 -- operations, refusals of one, seconds
local RUNNING, STOPPED = "running", "stopped"

local function key_of(ctx, id) return ctx.keys.operation .. id end

local function changed(ctx, id) event.changed(ctx, "operation:" .. id) end

local function delete(ctx, id)
  call("UNLINK", key_of(ctx, id), ctx.keys.operation_changed .. id, ctx.keys.operation_refused .. id)
  call("ZREM", ctx.keys.operations, id)
end

-- The oldest beyond a hundred leave.
local function sweep(ctx)
  local oldest = call("ZRANGE", ctx.keys.operations, 0, -(MOST + 1))
  for i = 1, #oldest do delete(ctx, oldest[i]) end
end

local function state_of(ctx, id)
  local found = call("HMGET", key_of(ctx, id), "state", "runner", "lease")
  if not found[1] then refuse.call("OPERATION_NOT_FOUND", id) end
  return found[1], found[2], tonumber(found[3])
end

local function refuse_state(id, what) refuse.call("WRONG_STATE", "operation " .. id .. " is " .. what) end

-- Notes a new one.
function M.start(ctx, id, runner, length, spec)
  local key = key_of(ctx, id)
  if call("EXISTS", key) == 1 then refuse_state(id, "there already") end
  local place = ctx.order.pending(ctx, ctx.keys.operations) -- in order of their starts, whatever the clock does
  call("HSET", key, "spec", spec, "state", RUNNING, "runner", runner, "lease", ctx.now + length, "created", ctx.now,
    "updated", ctx.now, "cursor", "", "looked", 0, "matched", 0, "changed", 0, "same", 0, "refused", 0)
  call("ZADD", ctx.keys.operations, place, id)
  sweep(ctx)
  changed(ctx, id)
end

-- Refuses unless `runner` runs it.
function M.check(ctx, id, runner)
  local state, holder = state_of(ctx, id)
  if state ~= RUNNING then refuse_state(id, state) end
  if holder ~= runner then refuse_state(id, "run by " .. holder) end
end

-- `runner` continues one that was stopped, or whose runner has not reported in time.
function M.take(ctx, id, runner, length)
  local state, holder, lease = state_of(ctx, id)
  if state == RUNNING and holder ~= runner and lease > ctx.now then refuse_state(id, "run by " .. holder) end
  if state ~= RUNNING and state ~= STOPPED then refuse_state(id, state) end
  call("HSET", key_of(ctx, id), "state", RUNNING, "runner", runner, "lease", ctx.now + length, "updated", ctx.now)
  changed(ctx, id)
end

-- It stops, or ends, in that state. One that has ended can only be undone. Returns 1, or 0 if nothing changed.
function M.finish(ctx, id, state)
  local before = state_of(ctx, id)
  local is_over = before ~= RUNNING and before ~= STOPPED
  if before == state or is_over and state ~= "undone" then return 0 end
  call("HSET", key_of(ctx, id), "state", state, "updated", ctx.now)
  changed(ctx, id)
  return 1
end

-- How far it got: a cursor (nil: the same), and how many jobs were looked at and matched since the last time.
local function advance(ctx, key, length, cursor, looked, matched)
  call("HSET", key, "lease", ctx.now + length, "updated", ctx.now)
  if cursor then call("HSET", key, "cursor", cursor) end
  if looked > 0 then call("HINCRBY", key, "looked", looked) end
  if matched > 0 then call("HINCRBY", key, "matched", matched) end
end

-- `done`: (jid, what undoes it) of each.
local function note_changed(ctx, id, done)
  local key = ctx.keys.operation_changed .. id
  call("HINCRBY", key_of(ctx, id), "changed", #done / 2)
  call("RPUSH", key, mp_pack(done))
  call("EXPIRE", key, UNDO)
end

local function note_refused(ctx, id, refused)
  local key = ctx.keys.operation_refused .. id
  call("HINCRBY", key_of(ctx, id), "refused", #refused)
  local room = MOST_REFUSED - call("LLEN", key)
  for i = 1, min(#refused, room) do call("RPUSH", key, mp_pack(refused[i])) end
end

-- What a call of its runner did: (jid, what undoes it) of the changed jobs, one list; how many stayed the same;
-- {jid, refusal} of the others. `op` has its id, the length of its lease, and what `advance` takes.
function M.note(ctx, op, done, same, refused)
  if #done > 0 then note_changed(ctx, op.id, done) end
  if same > 0 then call("HINCRBY", key_of(ctx, op.id), "same", same) end
  if #refused > 0 then note_refused(ctx, op.id, refused) end
  advance(ctx, key_of(ctx, op.id), op.length, op.cursor, op.looked, op.matched)
  changed(ctx, op.id)
end

-- {id, {field, value, …}} of each of up to `count` operations, newest first, from `offset` on.
function M.list(ctx, offset, count)
  local rows = {}
  local ids = count > 0 and call("ZRANGE", ctx.keys.operations, offset, offset + count - 1, "REV") or {}
  for i = 1, #ids do rows[i] = { ids[i], call("HGETALL", key_of(ctx, ids[i])) } end
  return rows
end

local function unpacked(list)
  for i = 1, #list do list[i] = mp_unpack(list[i]) end
  return list
end

-- Its fields, its refusals, and up to `count` of the packed lists of changed jobs from `offset` on, and how many
-- there are.
function M.get(ctx, id, offset, count)
  local key = ctx.keys.operation_changed .. id
  local lists = count > 0 and call("LRANGE", key, offset, offset + count - 1) or {}
  return {
    id, call("HGETALL", key_of(ctx, id)), unpacked(call("LRANGE", ctx.keys.operation_refused .. id, 0, -1)),
    unpacked(lists), call("LLEN", key),
  }
end

return M
