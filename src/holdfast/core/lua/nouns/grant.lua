-- grant: a job becomes somebody's, for the length of a lease.
--
-- `give` says to whom: worker, ends and length (ms), limited (whether the queue
-- has a limit), and out, the list that rows are appended to. `give.odd` becomes
-- true if a token is not the time of the grant, which a replay has to know.
local late = require("base.late")
local record = require("base.record")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local state = require("nouns.state")
local stats = require("nouns.stats")
local M = {}

local FLAG = record.FLAG
local has = record.has
local MOST_ATTEMPTS = 65535 -- what the record can count
local PIECE = 512 -- jobs granted at once

local call, pack, unpack_, rep, format
late.bind(function()
  call, pack, unpack_, rep, format = redis.call, struct.pack, unpack, string.rep, string.format
end)

-- Argument lists that every call fills anew from the front: no call reads beyond
-- what it wrote itself.
local names, sets, leases, waits = {}, {}, {}, {}

-- Appends the row of a job that is leased until `ends`; `give.row` may be another way.
function M.row(at, out, jid, r, ends, length)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, at.record.facts(r, ends, length), job.body(at, jid, r), ""
end

-- Whoever keeps lists of their own is told of the grant.
local function tell(at, give, jid, r)
  if at.workers then at.workers.hold(at, give.worker, jid, give.ends) end
  if at.events.tracked then at.events.tracked(at, "popped", jid, r) end
end

-- Turns a ready or lost job that is off the usual path into a running one.
-- Appends its row; returns the new record and the time its wait is counted from.
local function take(at, give, jid, r, sequence)
  local now, since, token = at.now, at.record.since(r), r.token + 1
  if token < now then token = now end
  if token ~= now then give.odd = true end
  r.state, r.token, r.popped, r.ended, r.worker = state.RUNNING, token, now, sequence, give.worker
  if r.attempts < MOST_ATTEMPTS then r.attempts = r.attempts + 1 end
  r.flags = record.without(r.flags, FLAG.NOTICED)
  at.record.begin(r, now)
  at.record.extend(r, give.ends)
  if has(r.flags, FLAG.TOLD) then history.note(at, jid, r, history.POPPED, r.queue) end
  tell(at, give, jid, r);
  (give.row or M.row)(at, give.out, jid, r, give.ends, give.length)
  return at.record.write(r), since
end

-- Makes one ready job a running one and appends its row. Returns the new record
-- and the time its wait is counted from; nil if there is no such job, or if it had
-- to be set aside.
local function grant(at, queue, give, jid, score, bytes)
  if not bytes then return nil end
  if not give.limited then
    local new, facts, body, since = at.record.grant(bytes, score, at.now, give.worker, give.ends, give.length)
    if new then
      local out = give.out
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, facts, body, ""
      return new, since
    end
  end
  local r = at.record.read(bytes)
  if not state.is_ready(r) or at.throttles.take(at, queue, jid, r, give) then return nil end
  return take(at, give, jid, r, at.order.sequence(score, r.priority))
end

-- One ready job. Returns 1, or 0 if there is no such job.
function M.one(at, queue, give, jid, score)
  local key = at.keys.job .. jid
  local new, since = grant(at, queue, give, jid, score, call("GET", key))
  if not new then return 0 end
  call("SET", key, new)
  call("ZADD", queue.leases, give.ends, jid)
  stats.waited(at, queue, pack("<d", at.now - since))
  return 1
end

-- Writes the first `n` grants of the argument lists.
local function flush(at, queue, n)
  if n == 0 then return end
  call("MSET", unpack_(sets, 1, 2 * n))
  call("ZADD", queue.leases, unpack_(leases, 1, 2 * n))
  stats.waited(at, queue, pack(rep("d", n), unpack_(waits, 1, n)))
end

-- The ready jobs among `ready` (member, score ...). What would make the reply too
-- long goes back to its old place. Returns how many, and whether some went back.
function M.many(at, queue, give, ready)
  local prefix, jid_of, out, now = at.keys.job, at.order.jid, give.out, at.now
  local count, ends = #ready / 2, format("%.17g", give.ends)
  for i = 1, count do names[i] = prefix .. jid_of(ready[2 * i - 1]) end
  local found, n, size, most = call("MGET", unpack_(names, 1, count)), 0, 0, at.bounds.reply
  for i = 1, count do
    if size > most then
      call("ZADD", queue.waiting, ready[2 * i], ready[2 * i - 1])
    else
      local jid = jid_of(ready[2 * i - 1])
      local new, since = grant(at, queue, give, jid, ready[2 * i], found[i])
      if new then
        n = n + 1
        sets[2 * n - 1], sets[2 * n] = names[i], new
        leases[2 * n - 1], leases[2 * n] = ends, jid
        waits[n] = now - since
        size = size + #out[#out - 1]
      end
    end
  end
  flush(at, queue, n)
  return n, size > most
end

-- Jobs whose lease was lost go first, whatever their priority. They keep their slots.
function M.lost(at, queue, give, want)
  local jids, records = lease.collect_lost(at, queue, want)
  local n = 0
  for i = 1, #jids do
    at.throttles.keep(records[i], give)
    local new, since = take(at, give, jids[i], records[i], records[i].ended)
    n = n + 1
    sets[2 * n - 1], sets[2 * n] = at.keys.job .. jids[i], new
    leases[2 * n - 1], leases[2 * n] = give.ends, jids[i]
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
