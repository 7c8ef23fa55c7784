-- record_reqless: the record where the caller brings the time.
--
-- It differs from the other form by the high bit of the state byte. Times, priority and
-- retries are doubles, for they may be fractional, negative or huge; names may be
-- long. It also keeps when the running wait or run began (`since`), the lease end
-- the holder knows (`expires`), and the job's place among the ready.
local order = require("base.order_reqless")
local M = {}

local WIDE = 128 -- the high bit of the state byte
local HEAD = "<BHdI4ddBdddc22I4c0I4c0"
local TAIL = "<ddddI4c0"
local FULL = HEAD .. "ddddI4c0"
local BODY = "c0" -- packed with the rest: each text that is made on the way is hashed from end to end

function M.read(bytes)
  local state, flags, priority, attempts, retries, remaining, losses, created, queued, since, place, queue, klass,
    start = unpack_bytes(HEAD, bytes)
  local r = {
    state = state - WIDE, flags = flags, priority = priority, attempts = attempts, retries = retries,
    remaining = remaining, losses = losses, created = created, queued = queued, since = since, place = place,
    queue = queue, klass = klass, token = 0, popped = 0, ended = 0, expires = 0, worker = "", body = "",
  }
  if attempts > 0 then r.token, r.popped, r.ended, r.expires, r.worker, start = unpack_bytes(TAIL, bytes, start) end
  r.body = sub(bytes, start)
  return r
end

function M.write(r)
  local queue, klass, worker, place = r.queue, r.klass, r.worker, r.place or order.NOWHERE
  if r.attempts == 0 then
    return (pack(HEAD .. BODY, r.state + WIDE, r.flags, r.priority, 0, r.retries, r.remaining, r.losses, r.created,
      r.queued, r.since, place, #queue, queue, #klass, klass, r.body))
  end
  return (pack(FULL .. BODY, r.state + WIDE, r.flags, r.priority, r.attempts, r.retries, r.remaining, r.losses,
    r.created, r.queued, r.since, place, #queue, queue, #klass, klass, r.token, r.popped, r.ended, r.expires, #worker,
    worker, r.body))
end

-- The time a wait is counted from.
function M.since(r) return r.since end
function M.ready() end
function M.lost_since(since) return since end

-- A new life, or a new lease, begins now.
function M.begin(r, now) r.since = now end

-- A lease ends at another time. True: the record shows it and has to be written.
function M.extend(r, ends)
  r.expires = ends
  return true
end

-- No straight way past the table of fields.
function M.grant() return nil end
function M.complete() return nil end

return M
