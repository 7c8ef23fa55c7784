-- operation: a change of many jobs that an operator has ordered, and how far it got.
--
-- The hash `O:<id>` says what is done and how far that is; any program may go on with it when the one that runs it
-- (`runner`) has not reported for a while. For an hour there are beside it the jobs that it changed (`:u`, for an
-- undo); the first jobs that refused are in `:r`.
local refuse = require("base.refuse")
local event = require("nouns.event")
local M = {}

local MOST, MOST_REFUSED, UNDO = 100, 100, 3600 -- operations, refusals of one, seconds
M.RUNNING, M.STOPPED = "running", "stopped"
M.FIELDS = {
  "spec", "state", "runner", "lease", "created", "updated", "cursor", "looked", "matched", "changed", "same", "refused",
}

local function key_of(ctx, id) return ctx.keys.operation .. id end

local function delete(ctx, id)
  local key = key_of(ctx, id)
  call("UNLINK", key, key .. ":r", key .. ":u")
  call("ZREM", ctx.keys.operations, id)
end

local function sweep(ctx)
  local oldest = call("ZRANGE", ctx.keys.operations, 0, -(MOST + 1))
  for i = 1, #oldest do delete(ctx, oldest[i]) end
end

local function state_of(ctx, id)
  local found = call("HMGET", key_of(ctx, id), "state", "runner", "lease")
  if not found[1] then refuse.call("OPERATION_NOT_FOUND", id) end
  return found[1], found[2], tonumber(found[3])
end

-- Notes a new one, of which the oldest beyond a hundred leave.
function M.start(ctx, id, runner, length, spec)
  local key = key_of(ctx, id)
  if call("EXISTS", key) == 1 then refuse.call("WRONG_STATE", "there is an operation " .. id .. " already") end
  call("HSET", key, "spec", spec, "state", M.RUNNING, "runner", runner, "lease", ctx.now + length, "created", ctx.now,
    "updated", ctx.now, "cursor", "", "looked", 0, "matched", 0, "changed", 0, "same", 0, "refused", 0)
  call("ZADD", ctx.keys.operations, ctx.now, id)
  sweep(ctx)
  event.changed(ctx, "op:" .. id)
end

local function refuse_state(id, what) refuse.call("WRONG_STATE", "operation " .. id .. " is " .. what) end

-- Refuses unless `runner` runs it.
function M.check(ctx, id, runner)
  local state, holder = state_of(ctx, id)
  if state ~= M.RUNNING then refuse_state(id, state) end
  if holder ~= runner then refuse_state(id, "run by " .. holder) end
end

-- `runner` goes on with one that was stopped, or whose runner has not reported in time.
function M.take(ctx, id, runner, length)
  local state, holder, lease = state_of(ctx, id)
  if state == M.RUNNING and holder ~= runner and lease > ctx.now then refuse_state(id, "run by " .. holder) end
  if state ~= M.RUNNING and state ~= M.STOPPED then refuse_state(id, state) end
  call("HSET", key_of(ctx, id), "state", M.RUNNING, "runner", runner, "lease", ctx.now + length, "updated", ctx.now)
  event.changed(ctx, "op:" .. id)
end

-- It ends, or stops, in that state. One that has ended stays so.
function M.finish(ctx, id, state)
  if state_of(ctx, id) ~= M.RUNNING and state == M.STOPPED then return 0 end
  call("HSET", key_of(ctx, id), "state", state, "updated", ctx.now)
  event.changed(ctx, "op:" .. id)
  return 1
end

-- How far it got: a cursor, and how many jobs were looked at and matched since the last time.
function M.advance(ctx, id, length, cursor, looked, matched)
  local key = key_of(ctx, id)
  call("HSET", key, "cursor", cursor, "lease", ctx.now + length, "updated", ctx.now)
  if looked > 0 then call("HINCRBY", key, "looked", looked) end
  if matched > 0 then call("HINCRBY", key, "matched", matched) end
  event.changed(ctx, "op:" .. id)
end

local function note_refused(key, refused)
  local room = MOST_REFUSED - call("LLEN", key .. ":r")
  for i = 1, min(#refused, room) do call("RPUSH", key .. ":r", mp_pack(refused[i])) end
end

-- What a call did: (jid, what undoes it) of the changed jobs, one list; how many stayed the same; {jid, refusal} of
-- the others.
function M.note(ctx, id, changed, same, refused)
  local key = key_of(ctx, id)
  if #changed > 0 then
    call("HINCRBY", key, "changed", #changed / 2)
    call("RPUSH", key .. ":u", mp_pack(changed))
    call("EXPIRE", key .. ":u", UNDO)
  end
  if same > 0 then call("HINCRBY", key, "same", same) end
  if #refused > 0 then
    call("HINCRBY", key, "refused", #refused)
    note_refused(key, refused)
  end
end

-- {id, field, value, …} of each of up to `count` operations, newest first, from `offset` on.
function M.list(ctx, offset, count)
  local ids, rows = call("ZRANGE", ctx.keys.operations, offset, offset + count - 1, "REV"), {}
  for i = 1, #ids do rows[i] = { ids[i], call("HGETALL", key_of(ctx, ids[i])) } end
  return rows
end

-- Its fields, its refusals, and up to `count` of the packed lists of changed jobs from `offset` on.
function M.get(ctx, id, offset, count)
  local key = key_of(ctx, id)
  local refused = call("LRANGE", key .. ":r", 0, -1)
  for i = 1, #refused do refused[i] = mp_unpack(refused[i]) end
  local changed = count > 0 and call("LRANGE", key .. ":u", offset, offset + count - 1) or {}
  for i = 1, #changed do changed[i] = mp_unpack(changed[i]) end
  return { id, call("HGETALL", key), refused, changed, call("LLEN", key .. ":u") }
end

return M
