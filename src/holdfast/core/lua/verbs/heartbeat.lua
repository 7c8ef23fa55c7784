-- heartbeat: leases are pushed further away.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local job = require("nouns.job")
local lease = require("nouns.lease")
local options = require("nouns.options")
local queues = require("nouns.queue")
local workers = require("nouns.worker")
local M = {}

local WIDTH = 4 -- (worker, jid, token, data)
local LOST, GONE = 0, -1
local FLAG = record.FLAG

local call, unpack_
late.bind(function() call, unpack_ = redis.call, unpack end)

-- The records behind the arguments, in order (false where there is none).
local function read_all(at, args, first, last)
  local names, prefix = {}, at.keys.job
  for i = first, last, WIDTH do names[#names + 1] = prefix .. args[i + 1] end
  if not names[2] then return { call("GET", names[1]) } end
  return call("MGET", unpack_(names))
end

local function group_of(at, groups, name, length)
  local group = groups[name]
  if not group then
    local queue = keys.of_queue(at, name)
    local due, _, _, heartbeat = queues.control(queue)
    if length == 0 then length = heartbeat == queues.NEVER and root.heartbeat(at) or heartbeat end
    group = { queue = queue, ends = at.now + length, due = due, entries = {} }
    groups[name] = group
    groups[#groups + 1] = group
  end
  return group
end

-- Notes the holder of a lease as one that lives.
local function note(at, signs, worker)
  local n = #signs
  signs[worker], signs[n + 1], signs[n + 2] = true, at.now, worker
end

-- Renews a lease that is held: it is whole again if it was noticed as lost, and new data
-- is kept. Returns its new end, or 0 where the run has taken all the time that it may.
local function renew(at, group, jid, r, data)
  local ends, noticed = group.ends, record.has(r.flags, FLAG.NOTICED)
  if record.has(r.flags, FLAG.OPTIONS) then
    ends = options.lease_end(at, jid, r, ends)
    if ends < group.ends and ends <= at.now then return LOST end
  end
  local entries = group.entries
  entries[#entries + 1], entries[#entries + 2] = ends, jid
  if at.workers then at.workers.hold(at, r.worker, jid, ends) end
  if at.record.extend(r, ends) or noticed or data ~= "" then
    if noticed then r.flags = r.flags - FLAG.NOTICED end
    job.set_body(at, jid, r, data)
    job.write(at, jid, r)
  end
  return ends
end

-- `args[first … last]` are (worker, jid, token, data or ""); `length` is in ms, 0
-- for each queue's own. Returns per job the new end, 0 (lost) or -1 (gone).
function M.run(at, length, args, first, last)
  local reply, groups, signs = {}, {}, {}
  if last < first then return reply end
  local found, read = read_all(at, args, first, last), at.record.read
  for i = 1, #found do
    local at_arg = first + (i - 1) * WIDTH
    local jid = args[at_arg + 1]
    local r = found[i] and read(found[i])
    if not r then
      reply[i] = GONE
    elseif not lease.is_held(r, args[at_arg], tonumber(args[at_arg + 2])) then
      reply[i] = LOST
    else
      reply[i] = renew(at, group_of(at, groups, r.queue, length), jid, r, args[at_arg + 3])
      if not signs[r.worker] then note(at, signs, r.worker) end
    end
  end
  for i = 1, #groups do
    local group = groups[i]
    if group.entries[1] then
      call("ZADD", group.queue.leases, unpack_(group.entries))
      if group.ends < group.due then queues.lower_due(at, group.queue, group.ends) end
    end
  end
  if signs[1] then workers.all_seen(at, signs) end
  return reply
end

M.WIDTH = WIDTH

return M
