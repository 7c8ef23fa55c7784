-- complete: the holder of some leases reports that their work is done.
local keys = require("base.keys")
local record = require("base.record")
local members = require("nouns.flow.members")
local ending = require("nouns.job.ending")
local history = require("nouns.job.history")
local touched_jobs = require("nouns.job.touched_jobs")
local lease = require("nouns.lease.lease")
local call_weight = require("nouns.operation.call_weight")
local result = require("nouns.job.result")
local completed = require("nouns.job.completed")
local state = require("nouns.job.state")
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

local NONE = {}
local COUNTED = record.FLAG.FLOW -- higher than any other flag of a plain job

local counting = nil -- groups of flows whose members this call completes, by flow: looked at once all is written

-- A job that is complete is counted in its flow.
local function count_in_flow(ctx, jid, returned)
  local flow = members.flow_of(jid)
  local group = counting and counting[flow] or members.read(ctx, flow)
  if not group then return end -- forgotten
  members.completed(ctx, group, jid, returned)
  counting = counting or {}
  counting[flow] = group
end

-- One job of the batch, in memory where that is enough. Returns its new record,
-- queue name, time of the pop and whether it has keys of its own, or nil and a code.
local function settle(ctx, worker, jid, token, data, bytes, returned)
  touched_jobs.note(jid)
  if bytes and data == "" and byte(returned) ~= 0 then
    local new, name, popped, flags = ctx.record.complete(bytes, worker, token, ctx.now)
    if new and flags and flags >= COUNTED then count_in_flow(ctx, jid, returned) end
    if new then return new, name, popped, false end
  end
  local r = bytes and ctx.record.read(bytes)
  if not r or not lease.is_held(r, worker, token) then return nil, M.refusal(ctx, jid, r, worker, token) end
  return ending.complete(ctx, jid, r, data, returned)
end

-- Ends a lease that is held, off the straight way; `data` may be "": unchanged, `returned` too: no result.
function M.one(ctx, jid, r, data, returned)
  local new, name, popped, extra = ending.complete(ctx, jid, r, data, returned)
  ending.write_one(ctx, keys.of_queue(ctx, name), jid, ctx.keys.job .. jid, new, popped, extra, jid)
end

local function complete_one(ctx, worker, args, i, lost)
  local jid, keep = args[i], args[i + 3]
  local key = ctx.keys.job .. jid
  local new, name, popped, extra = settle(ctx, worker, jid, tonumber(args[i + 1]), args[i + 2], call("GET", key),
    args[i + 4])
  if not new then
    lost[1], lost[2] = jid, name
    return
  end
  local queue = keys.of_queue(ctx, name)
  call("ZREM", queue.leases, jid)
  if keep ~= "0" then result.keep(ctx, jid, args[i + 4], keep) end
  ending.write_one(ctx, queue, jid, key, new, popped, extra, nil)
end

-- Argument lists that every call fills again from the front.
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
    local new, name, popped, extra = settle(ctx, worker, jid, tonumber(args[base + 1]), args[base + 2], bytes,
      args[base + 4])
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
  if n > 0 then ending.write_many(ctx, groups, sets, done, n) end
end

-- `args[first … last]` are (jid, token, data or "", keep in ms, result). Appends
-- (jid, code) of the lost ones and of those that were complete before to `lost`,
-- an empty list; the others are complete afterwards.
function M.run(ctx, worker, args, first, last, lost)
  counting = nil
  if last - first + 1 == WIDTH then
    complete_one(ctx, worker, args, first, lost)
  elseif last > first then
    complete_many(ctx, worker, args, first, last, lost)
  end
  for flow in pairs(counting or NONE) do
    local group = members.read(ctx, flow) -- others of this call may have ended off the straight way
    if group then ending.settle_group(ctx, group) end
  end
end

M.WIDTH = WIDTH

return M
