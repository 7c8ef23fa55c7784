-- heartbeat: leases are pushed further away.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local options = require("nouns.job.options")
local queues = require("nouns.queue.queue")
local workers = require("nouns.lease.worker")
local M = {}

local WIDTH = 4 -- (worker, jid, token, data)
local LOST, GONE = 0, -1
local FLAG = record.FLAG

-- The records behind the arguments, in order (false where there is none).
local function read_all(ctx, args, first, last)
  local names, prefix = {}, ctx.keys.job
  for i = first, last, WIDTH do names[#names + 1] = prefix .. args[i + 1] end
  if not names[2] then return { call("GET", names[1]) } end
  return call("MGET", unpack_(names))
end

local function group_of(ctx, groups, name, length)
  local group = groups[name]
  if not group then
    local queue = keys.of_queue(ctx, name)
    local due, _, _, heartbeat = queues.control(queue)
    if length == 0 then length = heartbeat == queues.NEVER and root.heartbeat(ctx) or heartbeat end
    group = { queue = queue, ends = ctx.now + length, due = due, entries = {} }
    groups[name] = group
    groups[#groups + 1] = group
  end
  return group
end

-- Notes the holder of a lease as one that lives.
local function note(ctx, signs, worker)
  local n = #signs
  signs[worker], signs[n + 1], signs[n + 2] = true, ctx.now, worker
end

-- Renews a lease that is held: it is whole again if it was noticed as lost, and new data
-- is kept. Returns its new end, or 0 where the run has taken all the time that it may.
local function renew(ctx, group, jid, r, data)
  local ends, noticed = group.ends, record.has(r.flags, FLAG.NOTICED)
  if record.has(r.flags, FLAG.OPTIONS) then
    ends = options.lease_end(ctx, jid, r, ends)
    if ends < group.ends and ends <= ctx.now then return LOST end
  end
  local entries = group.entries
  entries[#entries + 1], entries[#entries + 2] = ends, jid
  if ctx.workers then ctx.workers.hold(ctx, r.worker, jid, ends) end
  if ctx.record.extend(r, ends) or noticed or data ~= "" then
    if noticed then r.flags = r.flags - FLAG.NOTICED end
    job.set_body(ctx, jid, r, data)
    job.write(ctx, jid, r)
  end
  return ends
end

-- `args[first … last]` are (worker, jid, token, data or ""); `length` is in ms, 0
-- for each queue's own. Returns per job the new end, 0 (lost) or -1 (gone).
function M.run(ctx, length, args, first, last)
  local reply, groups, signs = {}, {}, {}
  if last < first then return reply end
  local found, read = read_all(ctx, args, first, last), ctx.record.read
  for i = 1, #found do
    local place = first + (i - 1) * WIDTH
    local jid = args[place + 1]
    local r = found[i] and read(found[i])
    if not r then
      reply[i] = GONE
    elseif not lease.is_held(r, args[place], tonumber(args[place + 2])) then
      reply[i] = LOST
      history.refused(ctx, jid, r, args[place], tonumber(args[place + 2]), "heartbeat")
    else
      reply[i] = renew(ctx, group_of(ctx, groups, r.queue, length), jid, r, args[place + 3])
      if not signs[r.worker] then note(ctx, signs, r.worker) end
    end
  end
  for i = 1, #groups do
    local group = groups[i]
    if group.entries[1] then
      call("ZADD", group.queue.leases, unpack_(group.entries))
      if group.ends < group.due then queues.lower_due(ctx, group.queue, group.ends) end
    end
  end
  if signs[1] then workers.all_seen(ctx, signs) end
  return reply
end

M.WIDTH = WIDTH

return M
