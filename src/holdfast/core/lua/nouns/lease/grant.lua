-- grant: jobs are given to a worker, for the length of a lease.
local admission = require("nouns.job.admission")
local attempt = require("nouns.job.attempt")
local event = require("nouns.event.event")
local loss = require("nouns.lease.loss")
local state = require("nouns.job.state")
local stats = require("nouns.queue.stats")
local M = {}

local PIECE = 512 -- jobs granted at once

-- The grant under way, which a pop fills in: `worker` gets jobs for `lease` ms (0: the length of
-- the queue), and their rows are appended to `out` by `row` (nil: as native clients get them). It understands what is
-- of its `level`.
--
-- ends and length (ms) of the leases, and the earliest end, `least`; `later`: when the first job is due that has
-- to wait for another worker; `limited`: the queue has a limit, of which `room` slots are free; `straight`: its plain
-- jobs start without a question (see `admission.room`); `granted`: tokens are above that of any deleted job;
-- `odd`: some token is not the time of the grant, which a replay has to know. What the call has
-- done: `spent`, jobs that take longer than others, up to `max_spent`; `upkeep`, what it may
-- still do; `throttled`, jobs that were held back; `cut`: there may be more behind the last one.
--
-- All fields are named at once: a table that grows is made twice.
function M.new(worker, lease_length, out, row)
  return {
    worker = worker, lease = lease_length, out = out, row = row, level = 0, ends = 0,
    length = 0, least = 0, later = 0, limited = false,
    straight = false, room = 0, granted = 0, odd = false, spent = 0, max_spent = 0, upkeep = 0, throttled = 0,
    cut = false,
  }
end

-- Argument lists that every call fills again from the front: no call reads beyond
-- what it wrote itself.
local names, sets, leases, waits = {}, {}, {}, {}

-- Makes one ready job a running one and appends its row. Returns the new record, the
-- time its wait is counted from, and the end of its lease unless it is that of the others;
-- nil if there is no such job, or if it was held back, or is too late.
local function grant_one(ctx, queue, grant, jid, score, bytes)
  if not bytes then return nil end
  if grant.straight then
    local new, facts, body, since = ctx.record.grant(bytes, score, ctx.now, grant.worker, grant.ends, grant.length)
    if new then
      local out = grant.out
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, facts, body, ""
      return new, since
    end
  end
  local r = ctx.record.read(bytes)
  if not state.is_ready(r) then return nil end
  if admission.at_grant(ctx, queue, jid, r, grant) then return nil end
  return attempt.begin(ctx, grant, jid, r, ctx.order.sequence(score, r.priority))
end

-- One ready job. Returns 1, or 0 if there is no such job.
function M.one(ctx, queue, grant, jid, score)
  local key = ctx.keys.job .. jid
  local new, since, ends = grant_one(ctx, queue, grant, jid, score, call("GET", key))
  if not new then return 0 end
  call("ZADD", queue.leases, ends or grant.ends, jid) -- the record last: see `put_right`
  call("SET", key, new)
  if ctx.watched then event.changed_job(ctx, jid, queue.name) end
  stats.waited(ctx, queue, pack("<d", ctx.now - since))
  return 1
end

-- Writes the first `n` grants of the argument lists.
local function flush(ctx, queue, n)
  if n == 0 then return end
  call("ZADD", queue.leases, unpack_(leases, 1, 2 * n))
  call("MSET", unpack_(sets, 1, 2 * n))
  if ctx.watched then
    for i = 2, 2 * n, 2 do event.changed_job(ctx, leases[i], queue.name) end
  end
  stats.waited(ctx, queue, pack(rep("d", n), unpack_(waits, 1, n)))
end

-- The ready jobs among `ready` (member, score ...). What would make the reply, or the
-- call, too long goes back to its old place. Returns how many, and whether some went back.
function M.many(ctx, queue, grant, ready)
  local prefix, jid_of, out, now = ctx.keys.job, ctx.order.jid, grant.out, ctx.now
  local count, ends = #ready / 2, format("%.17g", grant.ends)
  for i = 1, count do names[i] = prefix .. jid_of(ready[2 * i - 1]) end
  local found, n, size, most = call("MGET", unpack_(names, 1, count)), 0, 0, ctx.bounds.reply
  for i = 1, count do
    if size > most or grant.spent >= grant.max_spent then
      call("ZADD", queue.waiting, ready[2 * i], ready[2 * i - 1])
    else
      local jid = jid_of(ready[2 * i - 1])
      local new, since, own = grant_one(ctx, queue, grant, jid, ready[2 * i], found[i])
      if new then
        n = n + 1
        sets[2 * n - 1], sets[2 * n] = names[i], new
        leases[2 * n - 1], leases[2 * n] = own or ends, jid
        waits[n] = now - since
        size = size + #out[#out - 1]
      end
    end
  end
  flush(ctx, queue, n)
  return n, size > most or grant.spent >= grant.max_spent
end

-- Jobs whose lease was lost go first, whatever their priority. They keep their slots.
function M.lost(ctx, queue, grant, want)
  local jids, records, lapsed, seen = loss.collect(ctx, queue, want, grant.upkeep)
  grant.upkeep = grant.upkeep - seen
  local n = 0
  local got = 0
  for i = 1, #jids do
    if not admission.after_return(ctx, jids[i], records[i], grant) then
      ctx.throttles.keep(records[i], grant)
      local new, since, ends = attempt.begin(ctx, grant, jids[i], records[i], records[i].ended)
      n, got = n + 1, got + 1
      sets[2 * n - 1], sets[2 * n] = ctx.keys.job .. jids[i], new
      leases[2 * n - 1], leases[2 * n] = ends, jids[i]
      waits[n] = ctx.now - ctx.record.lost_since(since, lapsed[i])
    end
    if n == PIECE then
      flush(ctx, queue, n)
      n = 0
    end
  end
  flush(ctx, queue, n)
  return got
end

return M
