-- rollback: a call failed on its way, for a key of ours held what another program put there.
--
-- The store undoes nothing. Records are written last, so each job that the call
-- touched goes back to the place that its record names, unless it is there. What cannot be
-- put back is left: the next call that touches it and fails tries again.
local keys = require("base.keys")
local root = require("base.root")
local dependency = require("nouns.dependency.dependency")
local failure = require("nouns.failure.failure")
local members = require("nouns.flow.members")
local touched_jobs = require("nouns.job.touched_jobs")
local job = require("nouns.job.job")
local queues = require("nouns.queue.queue")
local dependents = require("nouns.dependency.dependents")
local state = require("nouns.job.state")
local M = {}

local function is_in(set, jid) return call("ZSCORE", set, jid) and true or false end

-- Its holder may settle it, or it is handed out again in time.
local function running(ctx, queue, jid)
  if is_in(queue.leases, jid) then return end
  local ends = ctx.now + root.heartbeat(ctx)
  call("ZADD", queue.leases, ends, jid)
  queues.lower_due(ctx, queue, ends)
end

local function is_ready(ctx, queue, jid, r) return is_in(queue.waiting, ctx.order.member(r, jid)) end

local function ready(ctx, queue, jid, r)
  if is_ready(ctx, queue, jid, r) then return end
  local first = queues.take_sequence(ctx, queue, 1)
  if r.state == state.STALLED then
    call("ZADD", queue.waiting, ctx.order.urgent(r, first + 1, jid))
  else
    call("ZADD", queue.waiting, ctx.order.place(r, first + 1, ctx.now, jid))
  end
  job.write(ctx, jid, r)
  queues.signal_if_idle(queue)
end

-- Its due time is lost.
local function scheduled(ctx, queue, jid)
  if not is_in(queue.scheduled, jid) then job.schedule(ctx, queue, jid, ctx.now) end
end

-- The last parent may have ended in this call.
local function depends(ctx, queue, jid, r)
  call("ZADD", queue.depends, "NX", ctx.now, jid)
  if r.klass == members.KLASS then return end
  if #dependency.named(ctx, jid) > 0 then return end
  dependency.settle(ctx, jid, r)
  state.move(r, state.WAITING)
  ready(ctx, queue, jid, r)
  job.write(ctx, jid, r) -- also if it was among the ready ones already
  call("ZREM", queue.depends, jid)
end

local function throttled(ctx, queue, jid, r)
  local known, is_there = pcall(is_ready, ctx, queue, jid, r)
  if not known or not is_there then call("ZADD", queue.throttled, "NX", ctx.now, jid) end
end

local function failed(ctx, queue, jid, r)
  local noted = failure.read(ctx, jid, r)
  if noted then failure.enter(ctx, queue, jid, noted[failure.GROUP], noted[failure.WHEN]) end
end

local HOME = {
  [state.RUNNING] = running, [state.WAITING] = ready, [state.STALLED] = ready, [state.SCHEDULED] = scheduled,
  [state.DEPENDS] = depends, [state.THROTTLED] = throttled, [state.FAILED] = failed,
}

local function home(ctx, jid)
  local r = job.read(ctx, jid)
  local place = r and HOME[r.state]
  if place then place(ctx, keys.of_queue(ctx, r.queue), jid, r) end
end

-- A job that was popped keeps its old place, if it is still ready.
local function ready_again(ctx, member, score)
  local jid = ctx.order.jid(member)
  local r = job.read(ctx, jid)
  if not r or not state.is_ready(r) then return end
  local queue = keys.of_queue(ctx, r.queue)
  local known, is_there = pcall(is_in, queue.throttled, jid)
  if not known or not is_there then call("ZADD", queue.waiting, "NX", score, member) end
end

-- A child that waits still goes back to its parent, a pending job to its throttle.
local function taken_again(ctx, set, jid, score)
  local r = job.read(ctx, jid)
  if not r or r.state ~= state.DEPENDS and r.state ~= state.THROTTLED then return end
  call("ZADD", set, "NX", score, jid)
  if r.state == state.DEPENDS then dependency.open_again(ctx, jid, dependents.parent_of(ctx, set), score) end
end

-- One that cannot be put back keeps no other from it.
function M.run(ctx)
  local jids, by_set, popped = touched_jobs.all()
  for i = 1, popped and #popped or 0, 2 do pcall(ready_again, ctx, popped[i], popped[i + 1]) end
  for set, list in pairs(by_set) do
    for i = 1, #list, 2 do
      pcall(taken_again, ctx, set, list[i], list[i + 1])
      pcall(home, ctx, list[i])
    end
  end
  for i = 1, #jids do pcall(home, ctx, jids[i]) end
end

return M
