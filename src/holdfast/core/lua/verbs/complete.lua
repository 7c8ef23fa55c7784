-- complete: the holder of some leases says their work is done.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local failure = require("nouns.failure")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local result = require("nouns.result")
local retention = require("nouns.retention")
local state = require("nouns.state")
local stats = require("nouns.stats")
local throttle = require("nouns.throttle")
local M = {}

local WIDTH = 5 -- (jid, token, data, keep, result)

local call, pack, unpack_, concat
late.bind(function() call, pack, unpack_, concat = redis.call, struct.pack, unpack, table.concat end)

-- Why a lease cannot be settled: the same end was recorded before, or it is lost.
local function refusal(jid, r, worker, token)
  if r and r.state == state.COMPLETE and r.token == token and r.worker == worker then return "again" end
  return lease.refusal(jid, r)
end

-- What a job with flags has to do beside the usual.
local function extras(at, queue, jid, r)
  throttle.release(at, queue, jid, r)
  if record.has(r.flags, record.FLAG.TOLD) then history.note(at, jid, r, history.DONE, queue.name) end
  failure.clear(at, jid, r)
  job.announce_end(at, jid, r)
end

-- Makes a held job a complete one, in memory; returns its run sample.
local function finish(at, r)
  state.move(r, state.COMPLETE)
  local ran = pack("<d", at.now - r.popped)
  r.ended, r.remaining = at.now, r.retries
  r.flags = record.without(r.flags, record.FLAG.NOTICED)
  return ran
end

local function complete_one(at, worker, args, i, lost)
  local jid, token, data, keep = args[i], tonumber(args[i + 1]), args[i + 2], args[i + 3]
  local key = at.keys.job .. jid
  local bytes = call("GET", key)
  local r = bytes and at.record.read(bytes)
  if not r or not lease.is_held(r, worker, token) then
    lost[1], lost[2] = jid, refusal(jid, r, worker, token)
    return
  end
  local queue, ran = keys.of_queue(at, r.queue), finish(at, r)
  call("ZREM", queue.leases, jid)
  if r.flags ~= 0 then extras(at, queue, jid, r) end
  if data ~= "" then job.set_body(at, jid, r, data) end
  call("SET", key, at.record.write(r))
  if keep ~= "0" then result.keep(at, jid, args[i + 4], keep) end
  stats.ran(at, queue, ran)
  retention.trim(at, call("RPUSH", at.keys.completed, jid))
end

-- Sorts a batch into what is held (by queue) and what is lost.
local function sort(at, worker, args, first, last, lost)
  local names, prefix, read = {}, at.keys.job, at.record.read
  for i = first, last, WIDTH do names[(i - first) / WIDTH + 1] = prefix .. args[i] end
  local found = call("MGET", unpack_(names))
  local held, seen = {}, {}
  for i = 1, #found do
    local at_arg = first + (i - 1) * WIDTH
    local jid, token = args[at_arg], tonumber(args[at_arg + 1])
    local r = found[i] and read(found[i])
    if r and not seen[jid] and lease.is_held(r, worker, token) then
      held[#held + 1], seen[jid] = { jid, r, at_arg, names[i] }, true
    else
      lost[#lost + 1], lost[#lost + 2] = jid, seen[jid] and "again" or refusal(jid, r, worker, token)
    end
  end
  return held
end

local function group_of(at, groups, name)
  local group = groups[name]
  if not group then
    group = { queue = keys.of_queue(at, name), jids = {}, ran = {} }
    groups[name] = group
    groups[#groups + 1] = group
  end
  return group
end

local function complete_many(at, worker, args, first, last, lost)
  local held = sort(at, worker, args, first, last, lost)
  if #held == 0 then return end
  local groups, sets, jids, write = {}, {}, {}, at.record.write
  for i = 1, #held do
    local jid, r, at_arg = held[i][1], held[i][2], held[i][3]
    local group = group_of(at, groups, r.queue)
    local n = #group.jids + 1
    group.jids[n], group.ran[n], jids[i] = jid, finish(at, r), jid
    if args[at_arg + 2] ~= "" then job.set_body(at, jid, r, args[at_arg + 2]) end
    if r.flags ~= 0 then held.slow = true else sets[#sets + 1], sets[#sets + 2] = held[i][4], write(r) end
    if args[at_arg + 3] ~= "0" then result.keep(at, jid, args[at_arg + 4], args[at_arg + 3]) end
  end
  for i = 1, #groups do call("ZREM", groups[i].queue.leases, unpack_(groups[i].jids)) end
  if held.slow then
    for i = 1, #held do
      local jid, r = held[i][1], held[i][2]
      if r.flags ~= 0 then
        extras(at, keys.of_queue(at, r.queue), jid, r)
        sets[#sets + 1], sets[#sets + 2] = held[i][4], write(r)
      end
    end
  end
  call("MSET", unpack_(sets))
  for i = 1, #groups do stats.ran(at, groups[i].queue, concat(groups[i].ran)) end
  retention.trim(at, call("RPUSH", at.keys.completed, unpack_(jids)))
end

-- `args[first … last]` are (jid, token, data or "", keep in ms, result). Appends
-- (jid, code) of the lost ones and of those that were complete before to `lost`,
-- an empty list; the others are complete afterwards.
function M.run(at, worker, args, first, last, lost)
  if last - first + 1 == WIDTH then return complete_one(at, worker, args, first, lost) end
  if last > first then return complete_many(at, worker, args, first, last, lost) end
end

M.WIDTH = WIDTH

return M
