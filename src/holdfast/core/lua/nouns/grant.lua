-- grant: jobs become somebody's, for the length of a lease.
--
-- `give` says to whom: see `attempt`. `spent` grows with jobs that take longer than
-- usual, a call ends where it reaches `patience`.
local late = require("base.late")
local record = require("base.record")
local attempt = require("nouns.attempt")
local event = require("nouns.event")
local expiry = require("nouns.expiry")
local lease = require("nouns.lease")
local state = require("nouns.state")
local stats = require("nouns.stats")
local M = {}

local EXPIRING = record.FLAG.EXPIRING
local LATE = 2 -- a job that came too late takes twice as long as one that is granted
local PIECE = 512 -- jobs granted at once

local call, pack, unpack_, rep, format
late.bind(function()
  call, pack, unpack_, rep, format = redis.call, struct.pack, unpack, string.rep, string.format
end)

-- Argument lists that every call fills anew from the front: no call reads beyond
-- what it wrote itself.
local names, sets, leases, waits = {}, {}, {}, {}

-- Makes one ready job a running one and appends its row. Returns the new record, the
-- time its wait is counted from, and the end of its lease unless it is the usual one;
-- nil if there is no such job, or if it had to be set aside, or is too late.
local function grant(at, queue, give, jid, score, bytes)
  if not bytes then return nil end
  if not give.limited and give.granted < at.now then
    local new, facts, body, since = at.record.grant(bytes, score, at.now, give.worker, give.ends, give.length)
    if new then
      local out = give.out
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, facts, body, ""
      return new, since
    end
  end
  local r = at.record.read(bytes)
  if not state.is_ready(r) then return nil end
  if record.has(r.flags, EXPIRING) and expiry.is_over(at, jid, r) then
    give.spent = give.spent + LATE
    expiry.fail(at, queue, jid, r)
    return nil
  end
  if at.throttles.take(at, queue, jid, r, give) then return nil end
  return attempt.begin(at, give, jid, r, at.order.sequence(score, r.priority))
end

-- One ready job. Returns 1, or 0 if there is no such job.
function M.one(at, queue, give, jid, score)
  local key = at.keys.job .. jid
  local new, since, ends = grant(at, queue, give, jid, score, call("GET", key))
  if not new then return 0 end
  call("ZADD", queue.leases, ends or give.ends, jid) -- the record last: see `put_right`
  call("SET", key, new)
  if at.watched then event.changed_job(at, jid, queue.name) end
  stats.waited(at, queue, pack("<d", at.now - since))
  return 1
end

-- Writes the first `n` grants of the argument lists.
local function flush(at, queue, n)
  if n == 0 then return end
  call("ZADD", queue.leases, unpack_(leases, 1, 2 * n))
  call("MSET", unpack_(sets, 1, 2 * n))
  if at.watched then
    for i = 2, 2 * n, 2 do event.changed_job(at, leases[i], queue.name) end
  end
  stats.waited(at, queue, pack(rep("d", n), unpack_(waits, 1, n)))
end

-- The ready jobs among `ready` (member, score ...). What would make the reply, or the
-- call, too long goes back to its old place. Returns how many, and whether some went back.
function M.many(at, queue, give, ready)
  local prefix, jid_of, out, now = at.keys.job, at.order.jid, give.out, at.now
  local count, ends = #ready / 2, format("%.17g", give.ends)
  for i = 1, count do names[i] = prefix .. jid_of(ready[2 * i - 1]) end
  local found, n, size, most = call("MGET", unpack_(names, 1, count)), 0, 0, at.bounds.reply
  for i = 1, count do
    if size > most or give.spent >= give.patience then
      call("ZADD", queue.waiting, ready[2 * i], ready[2 * i - 1])
    else
      local jid = jid_of(ready[2 * i - 1])
      local new, since, own = grant(at, queue, give, jid, ready[2 * i], found[i])
      if new then
        n = n + 1
        sets[2 * n - 1], sets[2 * n] = names[i], new
        leases[2 * n - 1], leases[2 * n] = own or ends, jid
        waits[n] = now - since
        size = size + #out[#out - 1]
      end
    end
  end
  flush(at, queue, n)
  return n, size > most or give.spent >= give.patience
end

-- Jobs whose lease was lost go first, whatever their priority. They keep their slots.
function M.lost(at, queue, give, want)
  local jids, records, seen = lease.collect_lost(at, queue, want, give.chores)
  give.chores = give.chores - seen
  local n = 0
  for i = 1, #jids do
    at.throttles.keep(records[i], give)
    local new, since, ends = attempt.begin(at, give, jids[i], records[i], records[i].ended)
    n = n + 1
    sets[2 * n - 1], sets[2 * n] = at.keys.job .. jids[i], new
    leases[2 * n - 1], leases[2 * n] = ends, jids[i]
    waits[n] = at.now - since
    if n == PIECE then
      flush(at, queue, n)
      n = 0
    end
  end
  flush(at, queue, n)
  return #jids
end

return M
