-- worker: when each was seen, and what each reports of itself.
--
-- Natively a worker is seen by a call for that, or by a heartbeat, and what it holds
-- is read off the leases of the queues. `ctx.workers` is this file in roots whose
-- protocol lists workers by their pops and keeps the leases of each.
local batch = require("base.batch")
local config = require("nouns.setting.config")
local event = require("nouns.event.event")
local M = {}

local QUIET = "quiet" -- a field that only others write
local SWEPT = 128 -- workers forgotten by one sweep
local VERSION, MOST_VERSIONS = "version", 50 -- of the versions of workers the newest are kept

function M.seen(ctx, worker) call("ZADD", ctx.keys.workers, ctx.now, worker) end

-- The same for many: `signs` are (time, worker) pairs.
function M.all_seen(ctx, signs) call("ZADD", ctx.keys.workers, unpack_(signs)) end

function M.hold(ctx, worker, jid, ends) call("ZADD", ctx.keys.held .. worker, ends, jid) end

function M.drop(ctx, worker, jid) call("ZREM", ctx.keys.held .. worker, jid) end

-- Whether a worker may report that field of itself.
function M.may_report(field) return field ~= QUIET end

-- Notes when the first worker of a version reported.
local function note_version(ctx, version)
  if version == "" or call("ZADD", ctx.keys.versions, "NX", ctx.now, version) == 0 then return end
  if call("ZCARD", ctx.keys.versions) > MOST_VERSIONS then call("ZPOPMIN", ctx.keys.versions) end
end

-- A worker reports what it is: args[first … last] are (field, value) pairs in place of all it
-- reported before, if there are any. Returns whether it has to be quiet.
function M.report(ctx, worker, args, first, last)
  local key = ctx.keys.worker_facts .. worker
  local quiet = call("HGET", key, QUIET)
  local known = call("ZADD", ctx.keys.workers, ctx.now, worker) == 0
  if last >= first then
    local facts = { unpack_(args, first, last) }
    for i = 1, #facts, 2 do
      if facts[i] == VERSION then note_version(ctx, facts[i + 1]) end
    end
    if quiet then facts[#facts + 1], facts[#facts + 2] = QUIET, quiet end
    call("UNLINK", key)
    call("HSET", key, unpack_(facts))
  end
  event.changed(ctx, known and "worker:" .. worker or "workers")
  return quiet == "1"
end

-- Has a known worker take no more jobs, or to take jobs again. Returns whether there is one.
function M.set_quiet(ctx, worker, on)
  if not call("ZSCORE", ctx.keys.workers, worker) then return false end
  if on then
    call("HSET", ctx.keys.worker_facts .. worker, QUIET, "1")
  else
    call("HDEL", ctx.keys.worker_facts .. worker, QUIET)
  end
  event.quiet(ctx, worker, on)
  event.changed(ctx, "worker:" .. worker)
  return true
end

-- What is known of a worker goes; its jobs run on. Returns 1, or 0 if it was not known.
function M.forget(ctx, worker)
  local known = call("ZREM", ctx.keys.workers, worker)
  call("UNLINK", ctx.keys.worker_facts .. worker)
  if ctx.workers then call("UNLINK", ctx.keys.held .. worker) end
  if known > 0 then event.changed(ctx, "workers") end
  return known
end

-- Before when a worker must have been seen last to count as gone.
local function horizon(ctx) return ctx.now - config.number(ctx, "max-worker-age") * 1000 end

-- A function that returns whether a worker counts as gone that took something at `last`: it
-- was not seen since either.
function M.gone(ctx)
  local oldest, known = horizon(ctx), {}
  return function(worker, last)
    if last > oldest then return false end
    if known[worker] == nil then
      known[worker] = (tonumber(call("ZSCORE", ctx.keys.workers, worker)) or 0) <= oldest
    end
    return known[worker]
  end
end

-- Rows {name, last seen, quiet, {field, value …}}, most recently seen first, at most
-- `count` behind (score, name). One that is too old is left out.
function M.list(ctx, score, name, count)
  local set = ctx.keys.workers
  local first = call("ZCOUNT", set, "-inf", horizon(ctx))
  local page, rows = batch.page(set, first, call("ZCARD", set), score, name, count, true), {}
  for i = 1, #page, 2 do
    local facts, fields, quiet = call("HGETALL", ctx.keys.worker_facts .. page[i]), {}, 0
    for k = 1, #facts, 2 do
      if facts[k] == QUIET then quiet = 1 else fields[#fields + 1], fields[#fields + 2] = facts[k], facts[k + 1] end
    end
    rows[#rows + 1] = { page[i], page[i + 1], quiet, fields }
  end
  return rows
end

-- All of them, most recently seen first.
function M.names(ctx) return call("ZRANGE", ctx.keys.workers, 0, -1, "REV") end

-- The jobs of a worker whose leases end within `first` and `last`, the latest first, where
-- the leases of each are kept.
function M.holds(ctx, worker, first, last)
  return call("ZRANGE", ctx.keys.held .. worker, last, first, "BYSCORE", "REV")
end

-- The workers seen last, at most `count`: {name, last seen, quiet, queues, slots, busy, host}.
function M.newest(ctx, count)
  local names, rows = call("ZRANGE", ctx.keys.workers, 0, count - 1, "REV", "WITHSCORES"), {}
  for i = 1, #names, 2 do
    local facts = call("HMGET", ctx.keys.worker_facts .. names[i], QUIET, "queues", "slots", "busy", "host")
    if tonumber(names[i + 1]) < horizon(ctx) then break end
    rows[#rows + 1] = {
      names[i], names[i + 1], facts[1] and 1 or 0, facts[2] or "", facts[3] or "1", facts[4] or "0", facts[5] or "",
    }
  end
  return rows
end

-- Forgets workers that are too old, some in each call. Returns how many.
function M.sweep(ctx)
  local old = call("ZRANGE", ctx.keys.workers, "-inf", horizon(ctx), "BYSCORE", "LIMIT", 0, SWEPT)
  for i = 1, #old do M.forget(ctx, old[i]) end
  return #old
end

return M
