-- root: the one declared key of every call, an existing hash.
--
-- Field `h` holds in one packed string what the hot path needs; a changing verb
-- reads it before anything else. The latest time has its room and is not used yet.
-- Field `clock` exists in test roots only.
local bits = require("base.bits")
local keys = require("base.keys")
local layout = require("base.layout")
local refuse = require("base.refuse")
local text = require("base.text")
local M = {}

local FORM = "<BBBBI6I6c8ddddddd"
local EPOCH_AT = 1 + 1 + 1 + 2 + 6 + 6
-- Flags. RELEASING: a finished job has dependents that are not released yet. WATCHED:
-- someone looks at the pages, until the moment in `watched`. MARKED: there are tracked
-- jobs. KEEPING: data of earlier attempts are kept. UPKEEP: some throttle needs it, now or when
-- its limit ends.
M.TEST, M.RELEASING, M.WATCHED, M.MARKED, M.KEEPING, M.UPKEEP = 1, 2, 4, 8, 16, 32
M.SCHEMA = 1
-- Which defaults the root has: 0 are those of release 0.1. The byte behind is the level of its data, 0 as long as it
-- has nothing that releases before 0.3 do not understand.
local DEFAULTS_NOW = 1
local LEVEL = layout.LEVEL
-- The length of a lease and the grace period where they are not configured, in ms: ours, and
-- those of the protocol that older programs speak.
local OURS, OLDER = { heartbeat = 30000, grace = 5000 }, { heartbeat = 60000, grace = 10000 }
M.MINUTE, M.DAY = 60000, 86400000

local function pack_root(root)
  return (pack(FORM, root.flags, root.schema, root.defaults, root.level, root.granted, root.latest, root.epoch,
    root.watched, root.heartbeat, root.grace, root.result_keep, root.history_age, root.history_count, root.max_data))
end

local function write(key, root)
  local packed = pack_root(root)
  call("HSET", key, "h", packed)
  return packed
end

local function unpacked(packed)
  local root = {}
  root.flags, root.schema, root.defaults, root.level, root.granted, root.latest, root.epoch, root.watched,
    root.heartbeat, root.grace, root.result_keep, root.history_age, root.history_count, root.max_data =
    unpack_bytes(FORM, packed)
  return root
end

function M.read(key)
  local packed = call("HGET", key, "h")
  if packed then return unpacked(packed) end
end

M.unpacked = unpacked

local function defaults_of(key) return key == keys.SHARED and OLDER or OURS end

-- A root of release 0.1 gets the defaults of this one where they are not configured. A call
-- that may not write sees them, and a later one writes them. Returns it packed.
local function renewed(key, packed)
  local root, set = unpacked(packed), call("HMGET", keys.of_root(key).config, "heartbeat", "grace-period")
  local defaults = defaults_of(key)
  root.defaults = DEFAULTS_NOW
  if not text.number(set[1]) then root.heartbeat = defaults.heartbeat end
  if not text.number(set[2]) then root.grace = defaults.grace end
  packed = pack_root(root)
  redis.pcall("HSET", key, "h", packed)
  return packed
end

-- The root as `unpacked` has it, with the defaults of this release; nil if there is none.
function M.current(key)
  local packed = call("HGET", key, "h")
  if not packed then return nil end
  return unpacked(byte(packed, 3) < DEFAULTS_NOW and renewed(key, packed) or packed)
end

local function store_time()
  local time = call("TIME")
  return time[1] * 1000 + floor(time[2] / 1000)
end

-- The rare root: its clock is a test's, or someone watches it.
local function open_flagged(ctx, key, flags)
  ctx.now = bits.has(flags, M.TEST) and tonumber(call("HGET", key, "clock")) or store_time()
  if bits.has(flags, M.WATCHED) and unpacked(ctx.packed).watched > ctx.now then ctx.watched = {} end
end

-- Fills the `ctx` of one call with what the root holds, and with the time. What it
-- holds of leases and retention is unpacked by `settings`, where needed. `ctx.watched`
-- is false, or the set of names whose change is published at the end of the call; `ctx.released`
-- counts the jobs that this call made ready for others, `ctx.followed` those that it ended because of others;
-- `ctx.history` has the limits of histories, once they are read.
function M.open(ctx, key)
  local packed = call("HGET", key, "h")
  if not packed then refuse.call("NO_ROOT", key) end
  local flags, schema, defaults, level = byte(packed, 1, 4)
  if schema ~= M.SCHEMA then refuse.call("SCHEMA", "this root has schema " .. schema) end
  if level > LEVEL then refuse.call("SCHEMA", ("a newer release put data here: they need level %d"):format(level)) end
  if defaults < DEFAULTS_NOW then packed = renewed(key, packed) end
  -- Equal texts are one text in Lua, so the comparison costs nothing.
  if ctx.keys.packed ~= packed then keys.belong_to(ctx.keys, packed, sub(packed, EPOCH_AT, EPOCH_AT + 7)) end
  ctx.packed, ctx.settings, ctx.flags, ctx.watched, ctx.released, ctx.followed = packed, false, flags, false, 0, 0
  ctx.history = false
  if flags == 0 then ctx.now = store_time() else open_flagged(ctx, key, flags) end
  return ctx
end

-- heartbeat, grace, result_keep, history_age (ms) and history_count of this root.
function M.settings(ctx)
  local settings = ctx.settings
  if not settings then
    settings = unpacked(ctx.packed)
    ctx.settings = settings
  end
  return settings
end

-- The two that every completion needs, without a table.
local KEPT_AT = 1 + 1 + 1 + 2 + 6 + 6 + 8 + 8 * 4
function M.history_kept(ctx) return unpack_bytes("<dd", ctx.packed, KEPT_AT) end

-- Whether a flag of the root is up.
function M.has(ctx, flag) return bits.has(ctx.flags, flag) end

-- Whether there are tracked jobs, in roots of which no other flag is used.
function M.is_marked(ctx) return bits.has(byte(ctx.packed), M.MARKED) end

-- The default length of a lease, in ms, likewise.
local HEARTBEAT_AT = 1 + 1 + 1 + 2 + 6 + 6 + 8 + 8
function M.heartbeat(ctx) return (unpack_bytes("<d", ctx.packed, HEARTBEAT_AT)) end

-- How many bytes the data of a job may have, 0 for the default.
local MAX_DATA_AT = HEARTBEAT_AT + 8 * 5
function M.max_data(ctx) return (unpack_bytes("<d", ctx.packed, MAX_DATA_AT)) end

-- The highest token of a job that was granted and whose record is deleted, or 0.
local GRANTED_AT = 1 + 1 + 1 + 2
function M.granted(ctx) return (unpack_bytes("<I6", ctx.packed, GRANTED_AT)) end

-- The record of a job that was granted under this token is deleted. A later job of its name
-- gets a higher one, also within this millisecond and after a clock was set back.
function M.note_granted(ctx, token)
  if token <= M.granted(ctx) then return end
  local root = M.read(ctx.keys.root)
  root.granted = token
  ctx.packed = write(ctx.keys.root, root)
end

-- A new epoch: eight bytes that differ from any other root's.
local function new_epoch(key, now)
  local digest = redis.sha1hex(key .. format("%.0f", now) .. call("TIME")[2] .. tostring({}))
  return digest:sub(1, 8)
end

-- Makes the root, a test root if it is given a clock. Returns it packed.
function M.make(key, test_clock)
  local now, defaults = test_clock or store_time(), defaults_of(key)
  local root = {
    granted = 0, latest = now, epoch = new_epoch(key, now), schema = M.SCHEMA, defaults = DEFAULTS_NOW, level = 0,
    watched = 0,
    heartbeat = defaults.heartbeat, grace = defaults.grace, result_keep = 3600000,
    history_age = 604800000, history_count = 50000, max_data = 0, flags = test_clock and M.TEST or 0,
  }
  if test_clock then call("HSET", key, "clock", format("%.17g", test_clock)) end
  return write(key, root)
end

function M.is_test(root) return bits.has(root.flags, M.TEST) end

-- The root has data from now on that only cores of this level understand.
function M.require_level(ctx, level)
  if byte(ctx.packed, 4) >= level then return end
  local root = M.read(ctx.keys.root)
  root.level = level
  ctx.packed = write(ctx.keys.root, root)
end

-- Raises or lowers one of the flags.
function M.set_flag(ctx, flag, on)
  local root = M.read(ctx.keys.root)
  if bits.has(root.flags, flag) == on then return end
  root.flags = bits.set(root.flags, flag, on)
  write(ctx.keys.root, root)
end

-- Notes until when someone watches, 0 for no one.
function M.watch(ctx, until_)
  local root = M.read(ctx.keys.root)
  root.flags, root.watched = bits.set(root.flags, M.WATCHED, until_ > 0), until_
  write(ctx.keys.root, root)
end

function M.set_clock(key, now)
  local root = M.read(key)
  if not root or not M.is_test(root) then refuse.call("NOT_A_TEST_ROOT", key) end
  call("HSET", key, "clock", format("%.17g", now))
end

-- Copies one setting to where the hot path sees it.
function M.set(key, field, value)
  local root = M.read(key)
  if not root then refuse.call("NO_ROOT", key) end
  root[field] = value
  write(key, root)
end

M.store_time = store_time

return M
