-- record: one string a job, a packed header and the body behind it.
--
-- The second part (token, popped, ended, worker) is absent in a job that was
-- never popped, that is, while `attempts` is 0. `ended` holds the job's sequence
-- while it waits again or runs, and the time of its end afterwards.
local late = require("base.late")
local M = {}

local HEAD = "<BHhHhhBI6I6Bc0Bc0"
local FULL = "<BHhHhhBI6I6Bc0Bc0I6I6I6Bc0"
local TAIL = "<I6I6I6Bc0"

M.FLAG = {
  TRACKED = 1, EXTRA = 2, DEPENDENTS = 4, THROTTLED = 8, TAGGED = 16, SPILLED = 32, NOTICED = 64, TOLD = 128,
  AWAITED = 256,
}
-- A longer body lives in a key of its own: written once, read once, deleted with the job.
M.SPILL = 512

local pack, unpack_
late.bind(function() pack, unpack_ = struct.pack, struct.unpack end)

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

-- The head that a batch of fresh jobs shares; klass and body follow for each.
function M.native.fresh(state, flags, priority, retries, now, queue)
  return pack("<BHhHhhBI6I6Bc0", state, flags, priority, 0, retries, retries, 0, now, now, #queue, queue)
end

function M.native.finish(head, klass, body) return head .. pack("<Bc0", #klass, klass) .. body end

-- The time a wait is counted from: the put, or the last pop if that was later.
function M.native.since(r)
  if r.popped > r.queued then return r.popped end
  return r.queued
end

return M
