-- unique: keys with which at most one job of a klass exists at a time.
--
-- The hash `X:<2 hex>` has the rest of a digest of klass and key, and behind it the jid of the job that holds the key;
-- where it is held for a time, a line end and the ms when that is over. No end of a job gives a key back: a put that
-- meets one reads the holder's record, and takes the key over from a job that is gone, has ended, or has started
-- (`hold` is `start`). So no key is held for longer than its job stands, whatever happened to that.
local extra = require("nouns.job.extra")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local BUCKET = 2 -- letters of the digest that name a hash
local SWEPT = 100 -- keys that one sweep looks at
local LOST = "U" -- extra field of a failed job whose key another one took: the digest

M.END, M.START = "end", "start"

-- The digest under which a key of a klass is kept.
function M.digest(klass, key) return redis.sha1hex(klass .. "\0" .. key) end

local function hash_of(ctx, digest) return ctx.keys.unique .. sub(digest, 1, BUCKET) end

local function field_of(digest) return sub(digest, BUCKET + 1) end

-- The holder of a key, and when it is over, if it is held for a time; nil if nobody holds it.
local function holder_of(ctx, digest)
  local found = call("HGET", hash_of(ctx, digest), field_of(digest))
  if not found then return nil end
  local at = find(found, "\n", 1, true)
  if not at then return found end
  return sub(found, 1, at - 1), tonumber(sub(found, at + 1))
end

-- Whether a job still holds a key that it took; a put with `hold` START takes the key of one that has started.
local function stands(ctx, r, hold, ends)
  if not r then return false end
  if ends then return ends > ctx.now end
  if r.state == state.COMPLETE or r.state == state.FAILED then return false end
  return hold ~= M.START or r.attempts == 0
end

-- The job that keeps this one from being put, and its record; nil if there is none.
function M.standing(ctx, digest, hold, jid)
  local holder, ends = holder_of(ctx, digest)
  if not holder or holder == jid then return nil end
  local r = job.read(ctx, holder)
  if stands(ctx, r, hold, ends) then return holder, r end
  -- An operator may try that one again: it has to know that its key was taken.
  if r and r.state == state.FAILED and not ends then
    extra.set(ctx, holder, r, LOST, digest)
    job.write(ctx, holder, r)
  end
end

-- What is kept of a holder. `hold` is END, START, or for how many ms.
local function value_of(ctx, hold, jid)
  local ends = tonumber(hold)
  return ends and format("%s\n%.0f", jid, ctx.now + ends) or jid
end

-- A job takes the key.
function M.take(ctx, digest, hold, jid)
  call("HSET", hash_of(ctx, digest), field_of(digest), value_of(ctx, hold, jid))
end

-- The same where nobody had it. Returns whether that was so.
function M.take_free(ctx, klass, opts, jid)
  local digest = M.digest(klass, opts.unique_key)
  return call("HSETNX", hash_of(ctx, digest), field_of(digest), value_of(ctx, opts.unique_for, jid)) == 1
end

-- The job that has the key of a failed one that is to be tried again; nil if it may be. Then it has it again.
function M.taken_from(ctx, jid, r)
  local digest = extra.get(ctx, jid, r, LOST)
  if not digest then return nil end
  local holder = M.standing(ctx, digest, M.END, jid)
  if holder then return holder end
  M.take(ctx, digest, M.END, jid)
  extra.clear(ctx, jid, r, LOST)
end

-- Drops keys whose jobs are gone or have ended, those of one hash at a time: some of them in each call, and the next
-- ones in the next. What is left for the next call stands in field `unique` of the root.
function M.sweep(ctx)
  local place = call("HGET", ctx.keys.root, "unique") or "0 0"
  local bucket, cursor = match(place, "^(%d+) (%d+)$")
  local hash = ctx.keys.unique .. format("%02x", tonumber(bucket))
  local found = call("HSCAN", hash, cursor, "COUNT", SWEPT)
  local entries = found[2]
  for i = 1, #entries, 2 do
    local digest = sub(hash, -BUCKET) .. entries[i]
    local holder, ends = holder_of(ctx, digest)
    if holder and not stands(ctx, job.read(ctx, holder), M.END, ends) then call("HDEL", hash, entries[i]) end
  end
  local next_one = found[1] == "0" and (tonumber(bucket) + 1) % 256 or tonumber(bucket)
  call("HSET", ctx.keys.root, "unique", format("%d %s", next_one, found[1]))
end

return M
