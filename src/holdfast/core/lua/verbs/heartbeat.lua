-- heartbeat: leases are pushed further away.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local job = require("nouns.job")
local lease = require("nouns.lease")
local queues = require("nouns.queue")
local M = {}

local WIDTH = 4 -- (worker, jid, token, data)
local LOST, GONE = 0, -1

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

-- A lease that was noticed as lost is whole again; new data is kept.
local function touch(at, jid, r, data, ends)
  if at.workers then at.workers.hold(at, r.worker, jid, ends) end
  if not at.record.extend(r, ends) and not record.has(r.flags, record.FLAG.NOTICED) and data == "" then return end
  r.flags = record.without(r.flags, record.FLAG.NOTICED)
  job.set_body(at, jid, r, data)
  job.write(at, jid, r)
end

-- `args[first … last]` are (worker, jid, token, data or ""); `length` is in ms, 0
-- for each queue's own. Returns per job the new end, 0 (lost) or -1 (gone).
function M.run(at, length, args, first, last)
  local reply, groups = {}, {}
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
      local group = group_of(at, groups, r.queue, length)
      touch(at, jid, r, args[at_arg + 3], group.ends)
      local entries = group.entries
      entries[#entries + 1], entries[#entries + 2] = group.ends, jid
      reply[i] = group.ends
    end
  end
  for i = 1, #groups do
    local group = groups[i]
    call("ZADD", group.queue.leases, unpack_(group.entries))
    if group.ends < group.due then queues.lower_due(group.queue, group.ends) end
  end
  return reply
end

M.WIDTH = WIDTH

return M
