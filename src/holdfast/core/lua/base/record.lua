-- record: one string a job, a packed header and the body behind it. The other form,
-- for roots whose callers bring the time, is `record_wide`.
--
-- The second part (token, popped, ended, worker) is absent in a job that was
-- never popped, that is, while `attempts` is 0. `ended` holds the job's sequence
-- while it waits again or runs, and the time of its end afterwards.
local late = require("base.late")
local order = require("base.order")
local M = {}

local HEAD = "<BHhHhhBI6I6Bc0Bc0"
local FULL = HEAD .. "I6I6I6Bc0"
local TAIL = "<I6I6I6Bc0"
local WHOLE = FULL .. "c0"
local FACTS = "<dddhHhhBddHBc0Bc0"
local WAITING, RUNNING, COMPLETE = 1, 2, 3

M.FLAG = {
  TRACKED = 1, EXTRA = 2, DEPENDENTS = 4, THROTTLED = 8, TAGGED = 16, SPILLED = 32, NOTICED = 64, TOLD = 128,
  AWAITED = 256, NAMED = 512,
}
-- A longer body lives in a key of its own: written once, read once, deleted with the job.
M.SPILL = 512

local pack, unpack_, sub
late.bind(function() pack, unpack_, sub = struct.pack, struct.unpack, string.sub end)

function M.has(flags, flag) return flags % (flag + flag) >= flag end

function M.with(flags, flag)
  if M.has(flags, flag) then return flags end
  return flags + flag
end

function M.without(flags, flag)
  if M.has(flags, flag) then return flags - flag end
  return flags
end

M.native = {}

function M.native.read(bytes)
  local state, flags, priority, attempts, retries, remaining, losses, created, queued, queue, klass, at =
    unpack_(HEAD, bytes)
  if attempts == 0 then
    return {
      state = state, flags = flags, priority = priority, attempts = 0, retries = retries, remaining = remaining,
      losses = losses, created = created, queued = queued, queue = queue, klass = klass,
      token = 0, popped = 0, ended = 0, worker = "", body = bytes:sub(at),
    }
  end
  local token, popped, ended, worker, start = unpack_(TAIL, bytes, at)
  return {
    state = state, flags = flags, priority = priority, attempts = attempts, retries = retries, remaining = remaining,
    losses = losses, created = created, queued = queued, queue = queue, klass = klass,
    token = token, popped = popped, ended = ended, worker = worker, body = bytes:sub(start),
  }
end

function M.native.write(r)
  local queue, klass, worker = r.queue, r.klass, r.worker
  if r.attempts == 0 then
    return pack(HEAD, r.state, r.flags, r.priority, 0, r.retries, r.remaining, r.losses, r.created, r.queued,
      #queue, queue, #klass, klass) .. r.body
  end
  return pack(FULL, r.state, r.flags, r.priority, r.attempts, r.retries, r.remaining, r.losses, r.created, r.queued,
    #queue, queue, #klass, klass, r.token, r.popped, r.ended, #worker, worker) .. r.body
end

-- The head that a batch of fresh jobs shares; the klass follows, then the body.
function M.native.fresh(state, flags, priority, retries, now, queue)
  return pack("<BHhHhhBI6I6Bc0", state, flags, priority, 0, retries, retries, 0, now, now, #queue, queue)
end

function M.native.with_klass(head, klass) return head .. pack("Bc0", #klass, klass) end

-- The time a wait is counted from: the put, or the last pop if that was later.
function M.native.since(r)
  if r.popped > r.queued then return r.popped end
  return r.queued
end

-- What the other form has to note at a put or pop, and when a lease ends at
-- another time; this one need not.
function M.native.begin() end
function M.native.extend() return false end

-- What the holder of a lease is told beside jid and data, in a layout of the
-- protocol: lease end and length, token, priority, attempts, retries, remaining,
-- losses, created, queued, flags, queue, klass.
function M.native.facts(r, ends, length)
  return pack(FACTS, ends, length, r.token, r.priority, r.attempts, r.retries, r.remaining, r.losses, r.created,
    r.queued, r.flags, #r.queue, r.queue, #r.klass, r.klass)
end

-- The usual grant without a table of fields: a waiting job that uses no feature
-- becomes a running one. Returns the new record, facts, body, the time its wait
-- is counted from, and the token; nil for any other job.
function M.native.grant(bytes, score, now, worker, ends, length)
  local state, flags, priority, attempts, retries, remaining, losses, created, queued, queue, klass, start =
    unpack_(HEAD, bytes)
  if flags ~= 0 or state ~= WAITING then return nil end
  local token, since = now, queued
  if attempts > 0 then
    local last, popped, _
    last, popped, _, _, start = unpack_(TAIL, bytes, start)
    if last >= now then token = last + 1 end
    if popped > since then since = popped end
  end
  local body, m, n = sub(bytes, start), #queue, #klass
  if attempts < 65535 then attempts = attempts + 1 end -- more does not fit
  return pack(WHOLE, RUNNING, 0, priority, attempts, retries, remaining, losses, created, queued, m, queue, n, klass,
    token, now, order.native.sequence(score, priority), #worker, worker, body),
    pack(FACTS, ends, length, token, priority, attempts, retries, remaining, losses, created, queued, 0, m, queue, n,
      klass), body, since, token
end

-- The usual completion, likewise: returns the new record, the queue's name and
-- the time of the pop; nil if the job uses a feature or is not held under `token`.
function M.native.complete(bytes, worker, token, now)
  local state, flags, priority, attempts, retries, _, losses, created, queued, queue, klass, start =
    unpack_(HEAD, bytes)
  if flags ~= 0 or state ~= RUNNING then return nil end
  local held, popped, _, holder, body = unpack_(TAIL, bytes, start)
  if held ~= token or holder ~= worker then return nil end
  return pack(WHOLE, COMPLETE, 0, priority, attempts, retries, retries, losses, created, queued, #queue, queue, #klass,
    klass, token, popped, now, #worker, worker, sub(bytes, body)), queue, popped
end

return M
