-- flow: jobs that were put together, and wait for each other.
--
-- The hash `J:<flow>` has how many they are (`total`), when they came (`created`), a name for people (`label`), what
-- each of them is and waits for (`steps`), and which of them ends it (`last`); the sorted set `J` has all flows by when
-- they came. Their jids are `<flow>-<number>`, from 0 on, so a list of them is not kept. What a flow is doing is read
-- off its jobs.
local members = require("nouns.flow.members")
local state = require("nouns.job.state")
local M = {}

local MOST, LONGEST = 10000, 7 * 86400000 -- flows that are kept, and for how long (ms)
local SWEPT = 100

function M.jid(flow, number) return format("%s-%d", flow, number) end

-- How many jobs it has, when it came, its name, the number of the job that ends it; nil if there is none.
function M.read(ctx, flow)
  local found = call("HMGET", ctx.keys.flow .. flow, "total", "created", "label", "last")
  if not found[1] then return nil end
  return tonumber(found[1]), tonumber(found[2]), found[3], tonumber(found[4] or found[1] - 1)
end

-- Of each job its klass, then what it waits for: first and last number (or twice the jid of a job that is not of the
-- flow) and policy, in turns. Nil if there is no such flow, or it was put before that was kept.
function M.steps(ctx, flow)
  local packed = call("HGET", ctx.keys.flow .. flow, "steps")
  return packed and mp_unpack(packed) or nil
end

-- (jid, number) of up to `count` jobs behind that with the number `score` ("": from the first on), and how many it has.
function M.page(ctx, flow, score, count)
  local total, group, found, n = M.read(ctx, flow) or 0, members.read(ctx, flow), {}, 0
  if group then total = total + group.members * group.stride end
  local first = score == "" and 0 or tonumber(score) + 1
  for number = first, min(first + count, total) - 1 do
    found[n + 1], found[n + 2] = M.jid(flow, number), format("%d", number)
    n = n + 2
  end
  return found, total
end

function M.write(ctx, flow, total, label, steps, last)
  local key = ctx.keys.flow .. flow
  call("HSET", key, "total", total, "created", ctx.now, "label", label, "steps", mp_pack(steps), "last", last)
  call("ZADD", ctx.keys.flows, ctx.now, flow)
end

-- It is not listed any more; its jobs stay as they are.
function M.forget(ctx, flow)
  call("ZREM", ctx.keys.flows, flow)
  members.forget(ctx, flow)
  return call("UNLINK", ctx.keys.flow .. flow)
end

-- Whether steps behind a large group are there that are not complete: they read its results, or will.
local function has_readers(ctx, group)
  if group.gather ~= members.PAGES or group.first < 2 then return false end
  local names = {}
  for number = 1, group.first - 1 do names[number] = ctx.keys.job .. M.jid(group.flow, number) end
  for _, bytes in ipairs(call("MGET", unpack_(names))) do
    if bytes and ctx.record.state_of(bytes) ~= state.COMPLETE then return true end
  end
  return false
end

-- Whether it has members that have not ended, or the job of its group has not, or its results are still read.
function M.is_awaited(ctx, flow)
  local group = members.read(ctx, flow)
  if not group then return false end
  if group.has_ended then return has_readers(ctx, group) end
  local ended = group.done + group.failed + group.cancelled
  return ended < group.members or call("EXISTS", ctx.keys.job .. M.jid(flow, 0)) == 1
end

function M.newest(ctx, count) return call("ZRANGE", ctx.keys.flows, -count, -1) end

-- Forgets some of those that are too old, or too many.
function M.sweep(ctx)
  local extra = call("ZCARD", ctx.keys.flows) - MOST
  local old = call("ZRANGE", ctx.keys.flows, "-inf", ctx.now - LONGEST, "BYSCORE", "LIMIT", 0, SWEPT)
  if extra > #old then old = call("ZRANGE", ctx.keys.flows, 0, min(extra, SWEPT) - 1) end
  for _, flow in ipairs(old) do
    -- One that is awaited stays, among the newest ones, so that it is not looked at each time.
    if M.is_awaited(ctx, flow) then call("ZADD", ctx.keys.flows, ctx.now, flow) else M.forget(ctx, flow) end
  end
end

return M
