-- record: one string a job, a packed header (`layout`) and the body behind it. The other form,
-- for roots whose callers bring the time, is `record_reqless`.
--
-- The second part (token, popped, ended, worker) is absent in a job that was
-- never popped, that is, while `attempts` is 0. `ended` holds the job's sequence
-- while it waits again or runs, and the time of its end afterwards. In most
-- lives `queued` is `created` and the token is the time of the pop: then both are
-- left out, and the state is raised by 64 (the short form).
local bits = require("base.bits")
local layout = require("base.layout")
local order = require("base.order")
local M = {}

local HEAD, TAIL, FACTS = layout.HEAD, layout.TAIL, layout.FACTS
local SHORT, SHORT_HEAD, SHORT_TAIL, SHORT_WHOLE =
  layout.SHORT, layout.SHORT_HEAD, layout.SHORT_TAIL, layout.SHORT_WHOLE
local WAITING, RUNNING, COMPLETE = SHORT + 1, SHORT + 2, SHORT + 3

M.FLAG = layout.FLAG
-- The flags of a job with budgets of its own, and of one that is counted in its flow, imply no further keys: such a job
-- may be a plain one. What needs no more than that may be added: one look-up decides, however many there are.
local FLOW, BUDGETED, DEPENDENTS = M.FLAG.FLOW, M.FLAG.BUDGETED, M.FLAG.DEPENDENTS
local PLAIN = { [0] = true, [BUDGETED] = true, [FLOW] = true, [FLOW + BUDGETED] = true }
function M.is_plain(flags) return PLAIN[flags] or false end
-- What asks for nothing when the job is granted: that others wait for it matters at its end.
local GRANTED = {
  [0] = true, [BUDGETED] = true, [FLOW] = true, [FLOW + BUDGETED] = true, [DEPENDENTS] = true,
  [DEPENDENTS + BUDGETED] = true,
}
-- A longer body lives in a key of its own: written once, read once, deleted with the job.
M.SPILL = 512

M.has, M.with, M.without = bits.has, bits.with, bits.without

-- Where they lie in a record of either form, as GETRANGE counts.
M.FLAGS_FROM, M.FLAGS_TO = "1", "2"

-- The flags of a record, 0 where there is none.
function M.flags_of(bytes) return bytes and byte(bytes, 2) + 256 * byte(bytes, 3) or 0 end

M.native = {}

function M.native.state_of(bytes) return byte(bytes) % SHORT end

function M.native.read(bytes)
  local short = byte(bytes) > SHORT
  local start
  local r = { token = 0, popped = 0, ended = 0, worker = "" }
  if short then
    r.state, r.flags, r.priority, r.attempts, r.retries, r.remaining, r.losses, r.created, r.queue, r.klass, start =
      unpack_bytes(SHORT_HEAD, bytes)
    r.state, r.queued = r.state - SHORT, r.created
  else
    r.state, r.flags, r.priority, r.attempts, r.retries, r.remaining, r.losses, r.created, r.queue, r.klass, r.queued,
      start = unpack_bytes(HEAD, bytes)
  end
  if r.attempts > 0 and short then
    r.popped, r.ended, r.worker, start = unpack_bytes(SHORT_TAIL, bytes, start)
    r.token = r.popped
  elseif r.attempts > 0 then
    r.popped, r.ended, r.worker, r.token, start = unpack_bytes(TAIL, bytes, start)
  end
  r.body = sub(bytes, start)
  return r
end

function M.native.write(r)
  local queue, klass, worker, popped = r.queue, r.klass, r.worker, r.attempts > 0
  if r.queued == r.created and r.token == r.popped then
    local head = pack(SHORT_HEAD, r.state + SHORT, r.flags, r.priority, r.attempts, r.retries, r.remaining, r.losses,
      r.created, #queue, queue, #klass, klass)
    return head .. (popped and pack(SHORT_TAIL, r.popped, r.ended, #worker, worker) or "") .. r.body
  end
  local head = pack(HEAD, r.state, r.flags, r.priority, r.attempts, r.retries, r.remaining, r.losses, r.created, #queue,
    queue, #klass, klass, r.queued)
  return head .. (popped and pack(TAIL, r.popped, r.ended, #worker, worker, r.token) or "") .. r.body
end

-- The head that a batch of fresh jobs shares; the klass follows, then the body.
function M.native.fresh(state, flags, priority, retries, now, queue)
  return pack("<BHhHhhBI6Bc0", state + SHORT, flags, priority, 0, retries, retries, 0, now, #queue, queue)
end

function M.native.with_klass(head, klass) return head .. pack("Bc0", #klass, klass) end

-- The time a wait is counted from: the put, or when the job became ready again after an attempt (the last pop, where a
-- core before 0.3 made it ready).
function M.native.since(r)
  local since = r.popped > r.queued and r.popped or r.queued
  return r.ended > since and r.ended or since
end

-- A job that was popped before is ready again since `when`. Its record has room for that where the end of a run has its
-- place; that of a waiting job is never read as that.
function M.native.ready(r, when)
  if r.attempts > 0 then r.ended = when end
end

-- The same of a job whose lease, or grace period, ended at `lapsed`.
function M.native.lost_since(since, lapsed) return lapsed > since and lapsed or since end

-- What the other form has to note at a put or pop, and when a lease ends at
-- another time; this one need not.
function M.native.begin() end
function M.native.extend() return false end

-- What the holder of a lease gets beside jid and data, in a layout of the
-- protocol: lease end and length, token, priority, attempts, retries, remaining,
-- losses, created, queued, flags, queue, klass.
function M.native.facts(r, ends, length)
  return pack(FACTS, ends, length, r.token, r.priority, r.attempts, r.retries, r.remaining, r.losses, r.created,
    r.queued, r.flags, #r.queue, r.queue, #r.klass, r.klass)
end

-- The grant of most jobs, without a table of fields: a job that waits for the first time
-- and uses no feature becomes a running one. Returns the new record, facts, body,
-- and the time its wait is counted from; nil for any other job.
function M.native.grant(bytes, score, now, worker, ends, length)
  if byte(bytes) ~= WAITING then return nil end
  local _, flags, priority, attempts, retries, remaining, losses, created, queue, klass, start =
    unpack_bytes(SHORT_HEAD, bytes)
  if attempts ~= 0 or not GRANTED[flags] then return nil end
  local body, m, n = sub(bytes, start), #queue, #klass
  return pack(SHORT_WHOLE, RUNNING, flags, priority, 1, retries, remaining, losses, created, m, queue, n, klass,
    now, order.native.sequence(score, priority), #worker, worker, body),
    pack(FACTS, ends, length, now, priority, 1, retries, remaining, losses, created, created, flags, m, queue, n,
      klass),
    body, created
end

-- The completion of most jobs, likewise: returns the new record, the queue's name,
-- the time of the pop, and the flags; nil if the job uses a feature or is not held under `token`.
function M.native.complete(bytes, worker, token, now)
  if byte(bytes) ~= RUNNING then return nil end
  local _, flags, priority, attempts, retries, _, losses, created, queue, klass, start = unpack_bytes(SHORT_HEAD, bytes)
  local popped, _, holder, body = unpack_bytes(SHORT_TAIL, bytes, start)
  if popped ~= token or holder ~= worker or not PLAIN[flags] then return nil end
  return pack(SHORT_WHOLE, COMPLETE, flags, priority, attempts, retries, retries, losses, created, #queue, queue,
    #klass, klass, popped, now, #worker, worker, sub(bytes, body)), queue, popped, flags
end

return M
