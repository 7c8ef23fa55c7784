-- unique: keys with which at most one job of a klass exists at a time.
--
-- The hash `X:<2 hex>` has the rest of a digest of klass and key, and behind it the jid of the job that holds the key;
-- where it is held until the start, a line end and `s`; where it is held for a time, a line end and the ms when that is
-- over. No end of a job gives a key back: a put that meets one reads the holder's record, and takes the key over from a
-- job that is gone, has ended, or has started and held it until then. So no key is held for longer than its job stands,
-- whatever happened to that.
--
-- A job that begins a new life must not be a second one of its key. So the digest is kept, under `<` and the jid, of a
-- job whose key another one took, and of one whose jid was chosen by its caller, who may put it again.
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local BUCKET = 2 -- letters of the digest that name a hash
local DIGEST = 40 -- letters of a digest
local PIECE, ROUNDS = 100, 10 -- keys that a sweep looks at once, and how often in one call
local WORTH = 4 -- it continues while a share of this many is over
local UNTIL_START = "\ns"

M.END, M.START = "end", "start"

-- The digest under which a key of a klass is kept.
function M.digest(klass, key) return redis.sha1hex(klass .. "\0" .. key) end

local function hash_of(ctx, digest) return ctx.keys.unique .. sub(digest, 1, BUCKET) end

local function field_of(digest) return sub(digest, BUCKET + 1) end

-- Where the key of a job is kept: a hash and a field.
local function place_of(ctx, jid) return hash_of(ctx, redis.sha1hex(jid)), "<" .. jid end

-- A holder as it is kept: its jid, and END, START, or the ms when its time is over.
local function parsed(kept)
  local at = find(kept, "\n", 1, true)
  if not at then return kept, M.END end
  return sub(kept, 1, at - 1), tonumber(sub(kept, at + 1)) or M.START
end

-- The holder of a key, and until when it has it; nil if nobody has it.
local function holder_of(ctx, digest)
  local kept = call("HGET", hash_of(ctx, digest), field_of(digest))
  if kept then return parsed(kept) end
end

local function has_ended(r) return r.state == state.COMPLETE or r.state == state.FAILED end

-- Whether a job with this record (nil: it is gone) still holds a key that it took.
local function stands(ctx, r, hold)
  if not r then return false end
  if type(hold) == "number" then return hold > ctx.now end
  return not has_ended(r) and (hold ~= M.START or r.attempts == 0)
end

-- Keeps which key a job has, or had. A new life is not bound by one that it had for a time, or until it started.
local function note(ctx, jid, r, digest, hold)
  if type(hold) == "number" or hold == M.START and r and r.attempts > 0 then return end
  local hash, field = place_of(ctx, jid)
  call("HSET", hash, field, digest .. (hold == M.START and UNTIL_START or ""))
end

-- The job that keeps this one from being put, and its record; nil if there is none.
function M.standing(ctx, digest, jid)
  local holder, hold = holder_of(ctx, digest)
  if not holder or holder == jid then return nil end
  local r = job.read(ctx, holder)
  if stands(ctx, r, hold) then return holder, r end
  if r and has_ended(r) then note(ctx, holder, r, digest, hold) end
end

-- What is kept of a holder. `hold` is END, START, or for how many ms.
local function value_of(ctx, hold, jid)
  local ends = tonumber(hold)
  if ends then return format("%s\n%.0f", jid, ctx.now + ends) end
  return hold == M.START and jid .. UNTIL_START or jid
end

-- A job takes the key.
function M.take(ctx, digest, hold, jid)
  call("HSET", hash_of(ctx, digest), field_of(digest), value_of(ctx, hold, jid))
end

-- The same of a job whose jid was chosen by its caller.
function M.take_again(ctx, digest, hold, jid)
  M.take(ctx, digest, hold, jid)
  note(ctx, jid, nil, digest, tonumber(hold) or hold)
end

-- Jobs from `first` on take the keys in their options, if nobody had any of them. Returns whether that was so.
function M.take_free(ctx, jobs)
  for i = 1, #jobs do
    local one = jobs[i]
    local digest = M.digest(one.klass, one.opts.unique_key)
    one.digest = digest
    if call("HSETNX", hash_of(ctx, digest), field_of(digest), value_of(ctx, one.opts.unique_for, one.jid)) == 0 then
      M.give_back(ctx, jobs, i - 1)
      return false
    end
  end
  return true
end

-- The first `count` of these jobs were not put after all.
function M.give_back(ctx, jobs, count)
  for i = 1, count do call("HDEL", hash_of(ctx, jobs[i].digest), field_of(jobs[i].digest)) end
end

-- A job begins a new life with another key, or with none: the one that it had is free.
function M.leave(ctx, jid)
  local hash, field = place_of(ctx, jid)
  local kept = call("HGET", hash, field)
  if not kept then return end
  local digest = sub(kept, 1, DIGEST)
  if holder_of(ctx, digest) == jid then call("HDEL", hash_of(ctx, digest), field_of(digest)) end
  call("HDEL", hash, field)
end

-- The job that has the key of one that ended and is to begin a new life; nil if it may. Then it has it again. `others`
-- (nil: none) has the jids of those that begin a new life with it.
function M.taken_from(ctx, jid, r, others)
  local hash, field = place_of(ctx, jid)
  local kept = call("HGET", hash, field)
  if not kept then return nil end
  local digest, hold = sub(kept, 1, DIGEST), #kept > DIGEST and M.START or M.END
  if hold == M.START and r.attempts > 0 then return nil end
  local holder = holder_of(ctx, digest)
  if holder and holder ~= jid and others and others[holder] then return holder end
  holder = M.standing(ctx, digest, jid)
  if holder then return holder end
  M.take(ctx, digest, hold, jid)
end

-- What is known of the key of a job: until when it has it, and which job holds it now; nil if that is nothing.
function M.facts(ctx, jid, r)
  local hash, field = place_of(ctx, jid)
  local kept = call("HGET", hash, field)
  local holder, hold
  if kept then holder, hold = holder_of(ctx, sub(kept, 1, DIGEST)) end
  local held_by = holder == jid and r or holder and job.read(ctx, holder)
  if held_by and stands(ctx, held_by, hold) then return { type(hold) == "number" and "time" or hold, holder } end
end

-- Whether what a hash has under a field is of a job that is gone, or of a time that is over.
local function is_over(ctx, field, kept)
  local holder, hold = parsed(kept)
  if sub(field, 1, 1) == "<" then holder = sub(field, 2) end
  if type(hold) == "number" and hold <= ctx.now then return true end
  return call("EXISTS", ctx.keys.job .. holder) == 0
end

-- Drops what is over of one piece of a hash. Returns how much that was, how much it looked at, and the next cursor.
local function sweep_piece(ctx, hash, cursor)
  local found = call("HSCAN", hash, cursor, "COUNT", PIECE)
  local entries, over = found[2], {}
  for i = 1, #entries, 2 do
    if is_over(ctx, entries[i], entries[i + 1]) then over[#over + 1] = entries[i] end
  end
  if over[1] then call("HDEL", hash, unpack_(over)) end
  return #over, #entries / 2, found[1]
end

-- Drops keys of jobs that are gone: some in each call, and the next ones in the next, for as long as that is worth it.
-- What is left for the next call stands in field `unique` of the root. Returns how many it dropped.
function M.sweep(ctx)
  local bucket, cursor = match(call("HGET", ctx.keys.root, "unique") or "0 0", "^(%d+) (%d+)$")
  local dropped, looked, over, count = 0, 0, nil, nil
  bucket = tonumber(bucket)
  for _ = 1, ROUNDS do
    over, count, cursor = sweep_piece(ctx, ctx.keys.unique .. format("%02x", bucket), cursor)
    dropped, looked = dropped + over, looked + count
    if cursor == "0" then bucket = (bucket + 1) % 256 end
    if looked >= PIECE and dropped * WORTH < looked then break end
  end
  call("HSET", ctx.keys.root, "unique", format("%d %s", bucket, cursor))
  return dropped
end

return M
