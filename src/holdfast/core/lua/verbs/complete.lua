-- complete: the holder of some leases reports that their work is done.
local keys = require("base.keys")
local record = require("base.record")
local event = require("nouns.event")
local failure = require("nouns.failure")
local history = require("nouns.history")
local touched_jobs = require("nouns.touched_jobs")
local job = require("nouns.job")
local lease = require("nouns.lease")
local call_weight = require("nouns.call_weight")
local dependents = require("nouns.dependents")
local result = require("nouns.result")
local completed = require("nouns.completed")
local retention = require("nouns.retention")
local state = require("nouns.state")
local stats = require("nouns.stats")
local M = {}

local WIDTH = 5 -- (jid, token, data, keep, result)
local LIGHT = 102 -- jobs that are never too heavy for one call

-- Why a lease cannot be settled: the same end was recorded before, or it is lost.
function M.refusal(ctx, jid, r, worker, token)
  if r and r.state == state.COMPLETE and r.token == token and r.worker == worker then return "again" end
  if r and history.ending(ctx, jid, r, worker, token) == history.DONE then return "again" end
  history.refused(ctx, jid, r, worker, token, "complete")
  return lease.refusal(jid, r)
end

-- A held job off the straight path. Returns its new record, queue name and time of the pop.
local function finish(ctx, jid, r, data)
  local queue, popped = keys.of_queue(ctx, r.queue), r.popped
  state.move(r, state.COMPLETE)
  r.ended, r.remaining = ctx.now, r.retries
  r.flags = record.without(r.flags, record.FLAG.NOTICED)
  lease.let_go(ctx, queue, jid, r)
  if record.has(r.flags, record.FLAG.HISTORY) then history.note(ctx, jid, r, history.DONE, queue.name) end
  failure.clear(ctx, jid, r)
  job.set_body(ctx, jid, r, data)
  job.announce_end(ctx, jid, r)
  if record.has(r.flags, record.FLAG.DEPENDENTS) then dependents.released(ctx, jid, r) end
  if ctx.events.tracked then ctx.events.tracked(ctx, "completed", jid, r) end
  if ctx.events.completed then ctx.events.completed(ctx, jid, queue.name) end
  return ctx.record.write(r), r.queue, popped, not record.is_plain(r.flags)
end

-- One job of the batch, in memory where that is enough. Returns its new record,
-- queue name, time of the pop and whether it has keys of its own, or nil and a code.
local function settle(ctx, worker, jid, token, data, bytes)
  touched_jobs.note(jid)
  if bytes and data == "" then
    local new, name, popped = ctx.record.complete(bytes, worker, token, ctx.now)
    if new then return new, name, popped, false end
  end
  local r = bytes and ctx.record.read(bytes)
  if not r or not lease.is_held(r, worker, token) then return nil, M.refusal(ctx, jid, r, worker, token) end
  return finish(ctx, jid, r, data)
end

-- Ends a lease that is held, off the straight path; `data` may be "": unchanged.
function M.one(ctx, jid, r, data)
  local new, name, popped, extra = finish(ctx, jid, r, data)
  call("SET", ctx.keys.job .. jid, new)
  if ctx.watched then event.changed_job(ctx, jid, name) end
  retention.trim(ctx, ctx.completed.add(ctx, jid, extra), 1, jid)
  stats.ran(ctx, keys.of_queue(ctx, name), pack("<d", ctx.now - popped))
end

local function complete_one(ctx, worker, args, i, lost)
  local jid, keep = args[i], args[i + 3]
  local key = ctx.keys.job .. jid
  local new, name, popped, extra = settle(ctx, worker, jid, tonumber(args[i + 1]), args[i + 2], call("GET", key))
  if not new then
    lost[1], lost[2] = jid, name
    return
  end
  local queue = keys.of_queue(ctx, name)
  call("ZREM", queue.leases, jid)
  call("SET", key, new)
  if ctx.watched then event.changed_job(ctx, jid, name) end
  if keep ~= "0" then result.keep(ctx, jid, args[i + 4], keep) end
  retention.trim(ctx, call("RPUSH", ctx.keys.completed, completed.entry(jid, extra)), 1)
  stats.ran(ctx, queue, pack("<d", ctx.now - popped))
end

-- Argument lists that every call fills anew from the front.
local names, sets, done = {}, {}, {}

local function group_of(ctx, groups, name)
  local group = groups[name]
  if not group then
    group = { queue = keys.of_queue(ctx, name), name = name, jids = {}, ran = {} }
    groups[name] = group
    groups[#groups + 1] = group
  end
  return group
end

-- The first `n` completions: leases end, samples are booked, records written.
local function flush(ctx, groups, n)
  for _, group in ipairs(groups) do
    call("ZREM", group.queue.leases, unpack_(group.jids))
    for k = 1, ctx.watched and #group.jids or 0 do event.changed_job(ctx, group.jids[k], group.name) end
  end
  call("MSET", unpack_(sets, 1, 2 * n))
  retention.trim(ctx, call("RPUSH", ctx.keys.completed, unpack_(done, 1, n)), n)
  for _, group in ipairs(groups) do
    stats.ran(ctx, group.queue, pack(rep("d", #group.ran), unpack_(group.ran)))
  end
end

local function complete_many(ctx, worker, args, first, last, lost)
  local prefix, now, groups, settled, n = ctx.keys.job, ctx.now, {}, {}, 0
  local count, group = (last - first + 1) / WIDTH, nil
  for i = 1, count do names[i] = prefix .. args[first + (i - 1) * WIDTH] end
  local found = call("MGET", unpack_(names, 1, count))
  if count > LIGHT and ctx.bounds.settled then call_weight.check_ended(ctx, found, count) end
  for i = 1, count do
    local base = first + (i - 1) * WIDTH
    local jid = args[base]
    local bytes = settled[jid] or found[i] -- a jid named twice finds its job complete
    local new, name, popped, extra = settle(ctx, worker, jid, tonumber(args[base + 1]), args[base + 2], bytes)
    if new then
      n, settled[jid] = n + 1, new
      if not group or group.name ~= name then group = group_of(ctx, groups, name) end
      local k = #group.jids + 1
      group.jids[k], group.ran[k] = jid, now - popped
      sets[2 * n - 1], sets[2 * n], done[n] = names[i], new, extra and completed.entry(jid, true) or jid
      if args[base + 3] ~= "0" then result.keep(ctx, jid, args[base + 4], args[base + 3]) end
    else
      lost[#lost + 1], lost[#lost + 2] = jid, name
    end
  end
  if n > 0 then flush(ctx, groups, n) end
end

-- `args[first … last]` are (jid, token, data or "", keep in ms, result). Appends
-- (jid, code) of the lost ones and of those that were complete before to `lost`,
-- an empty list; the others are complete afterwards.
function M.run(ctx, worker, args, first, last, lost)
  if last - first + 1 == WIDTH then return complete_one(ctx, worker, args, first, lost) end
  if last > first then return complete_many(ctx, worker, args, first, last, lost) end
end

M.WIDTH = WIDTH

return M
