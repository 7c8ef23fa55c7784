-- unique: keys with which at most one job of a klass exists at a time.
--
-- The hash `X:` has the jid of the job that holds a key under the klass, a byte 0 and the key; where it is held until
-- the start, the jid, a line end and `s`; where it is held for a time, the jid, a line end and the ms when that is
-- over. No end of a job gives a key back: a put that meets one reads the holder's record, and takes the key over from
-- a job that is gone, has ended, or has started and held it until then. So no key is held for longer than its job
-- stands, whatever happened to that.
--
-- A job that begins a new life must not be a second one of its key. So the key is kept, under `<` and the jid, of a
-- job whose key another one took, and of one whose jid was chosen by its caller, who may put it again.
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local PIECE, ROUNDS = 100, 10 -- keys that a sweep looks at once, and how often in one call
local WORTH = 4 -- it continues while a share of this many is over
local UNTIL_START = "\ns"

M.END, M.START = "end", "start"

-- The key of a klass, as it is kept.
function M.of(klass, key) return klass .. "\0" .. key end

-- Where the key of a job is kept.
local function own(jid) return "<" .. jid end

-- What is kept: a jid, or a key; and END, START, or the ms when its time is over.
local function parsed(kept)
  local at = find(kept, "\n", 1, true)
  if not at then return kept, M.END end
  return sub(kept, 1, at - 1), tonumber(sub(kept, at + 1)) or M.START
end

-- The holder of a key, and until when it has it; nil if the key is free.
local function holder_of(ctx, key)
  local kept = call("HGET", ctx.keys.unique, key)
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
local function note(ctx, jid, r, key, hold)
  if type(hold) == "number" or hold == M.START and r and r.attempts > 0 then return end
  call("HSET", ctx.keys.unique, own(jid), key .. (hold == M.START and UNTIL_START or ""))
end

-- The job that keeps this one from being put, and its record; nil if there is none.
function M.standing(ctx, key, jid)
  local holder, hold = holder_of(ctx, key)
  if not holder or holder == jid then return nil end
  local r = job.read(ctx, holder)
  if stands(ctx, r, hold) then return holder, r end
  if r and has_ended(r) then note(ctx, holder, r, key, hold) end
end

-- What is kept of a holder. `hold` is END, START, or for how many ms.
local function value_of(ctx, hold, jid)
  if not hold or hold == M.END then return jid end
  return hold == M.START and jid .. UNTIL_START or format("%s\n%.0f", jid, ctx.now + tonumber(hold))
end

-- A job takes the key.
function M.take(ctx, key, hold, jid) call("HSET", ctx.keys.unique, key, value_of(ctx, hold, jid)) end

-- The same of a job whose jid was chosen by its caller.
function M.take_again(ctx, key, hold, jid)
  M.take(ctx, key, hold, jid)
  note(ctx, jid, nil, key, tonumber(hold) or hold)
end

-- An argument list that every call fills again from the front.
local pairs_, named = {}, {}

-- Many jobs take their keys, if none of them is held, and each is named once.
local function take_many(ctx, args, first, last, width, hold)
  local n = 0
  for i = first, last, width do
    n = n + 1
    local key = M.of(args[i + 1], args[i + 5])
    named[n], pairs_[2 * n - 1], pairs_[2 * n] = key, key, value_of(ctx, hold, args[i])
  end
  local found = call("HMGET", ctx.keys.unique, unpack_(named, 1, n))
  for i = 1, n do
    if found[i] then return false end
  end
  if call("HSET", ctx.keys.unique, unpack_(pairs_, 1, 2 * n)) == n then return true end
  M.give_back(ctx, args, first, last, width)
  return false
end

-- Jobs, of `width` words each, take their keys, which are their sixth words, if all of them are free. Returns whether
-- that was so.
function M.take_free(ctx, args, first, last, width, hold)
  if last - first >= width then return take_many(ctx, args, first, last, width, hold) end
  local key = M.of(args[first + 1], args[first + 5])
  return call("HSETNX", ctx.keys.unique, key, value_of(ctx, hold, args[first])) == 1
end

-- These jobs were not put after all.
function M.give_back(ctx, args, first, last, width)
  for i = first, last, width do call("HDEL", ctx.keys.unique, M.of(args[i + 1], args[i + 5])) end
end

-- A job begins a new life with another key, or with none: the one that it had is free.
function M.leave(ctx, jid)
  local kept = call("HGET", ctx.keys.unique, own(jid))
  if not kept then return end
  local key = parsed(kept)
  if holder_of(ctx, key) == jid then call("HDEL", ctx.keys.unique, key) end
  call("HDEL", ctx.keys.unique, own(jid))
end

-- The job that has the key of one that ended and is to begin a new life; nil if it may. Then it has it again. `others`
-- (nil: none) has the jids of those that begin a new life with it.
function M.taken_from(ctx, jid, r, others)
  local kept = call("HGET", ctx.keys.unique, own(jid))
  if not kept then return nil end
  local key, hold = parsed(kept)
  if hold == M.START and r.attempts > 0 then return nil end
  local holder = holder_of(ctx, key)
  if holder and holder ~= jid and others and others[holder] then return holder end
  holder = M.standing(ctx, key, jid)
  if holder then return holder end
  M.take(ctx, key, hold, jid)
end

-- What is known of the key of a job: until when it has it, and which job holds it now; nil if that is nothing.
function M.facts(ctx, jid, r)
  local kept = call("HGET", ctx.keys.unique, own(jid))
  local holder, hold
  if kept then holder, hold = holder_of(ctx, (parsed(kept))) end
  local held_by = holder == jid and r or holder and job.read(ctx, holder)
  if held_by and stands(ctx, held_by, hold) then return { type(hold) == "number" and "time" or hold, holder } end
end

-- Whether what is kept is of a job that is gone, or of a time that is over.
local function is_over(ctx, field, kept)
  local holder, hold = parsed(kept)
  if not find(field, "\0", 1, true) then holder = sub(field, 2) end
  if type(hold) == "number" and hold <= ctx.now then return true end
  return call("EXISTS", ctx.keys.job .. holder) == 0
end

-- Drops what is over of one piece. Returns how much that was, how much it looked at, and the next cursor.
local function sweep_piece(ctx, cursor)
  local found = call("HSCAN", ctx.keys.unique, cursor, "COUNT", PIECE)
  local entries, over = found[2], {}
  for i = 1, #entries, 2 do
    if is_over(ctx, entries[i], entries[i + 1]) then over[#over + 1] = entries[i] end
  end
  if over[1] then call("HDEL", ctx.keys.unique, unpack_(over)) end
  return #over, #entries / 2, found[1]
end

-- Drops keys of jobs that are gone: some in each call, and the next ones in the next, for as long as that is worth it.
-- Where the next call begins stands in field `unique` of the root. Returns how many it dropped.
function M.sweep(ctx)
  local cursor, dropped, looked = call("HGET", ctx.keys.root, "unique") or "0", 0, 0
  for _ = 1, ROUNDS do
    local over, count
    over, count, cursor = sweep_piece(ctx, match(cursor, "%d+"))
    dropped, looked = dropped + over, looked + count
    if cursor == "0" or dropped * WORTH < looked then break end
  end
  if looked > 0 then call("HSET", ctx.keys.root, "unique", cursor) end
  return dropped
end

return M
