-- event: hints for listeners. A message that no one receives costs a third of a microsecond.
--
-- `ctx.events` is this or `event_log`; a message that this one lacks is not sent.
local record = require("base.record")
local root = require("base.root")
local M = {}

local TRACKED = record.FLAG.TRACKED
local MOST_IDS = 32 -- that one report of messages names; it has the number of all of them
local has = record.has

local function to_worker(ctx, event, jid, worker)
  call("PUBLISH", ctx.keys.worker_channel .. worker,
    '{"jid":' .. encode(jid) .. ',"event":"' .. event .. '","worker":' .. encode(worker) .. "}")
end

-- To the holder of a lease: it lost it.
function M.lock_lost(ctx, jid, worker) to_worker(ctx, "lock_lost", jid, worker) end

-- To the holder of a lease, if there is one (worker ~= ""): the job is gone.
function M.canceled(ctx, jid, _, worker)
  if worker ~= "" then to_worker(ctx, "canceled", jid, worker) end
end

-- To a worker: take no more jobs, or take jobs again.
function M.quiet(ctx, worker, on)
  call("PUBLISH", ctx.keys.worker_channel .. worker,
    '{"event":"' .. (on and "quiet" or "resume") .. '","worker":' .. encode(worker) .. "}")
end

-- To a worker: send the stack of its job, on the channel of `question`. Returns how many
-- received that on this node.
function M.asked(ctx, worker, jid, question)
  return call("PUBLISH", ctx.keys.worker_channel .. worker, '{"event":"stack","jid":' .. encode(jid) .. ',"question":'
    .. encode(question) .. ',"worker":' .. encode(worker) .. "}")
end

-- The stack, on that channel. Returns how many received it on this node.
function M.answered(ctx, question, stack) return call("PUBLISH", ctx.keys.stack_channel .. question, stack) end

-- The flags of a fresh job: an earlier one of that name may have been tracked. A root
-- without tracked jobs is not asked.
function M.flags(ctx, jid)
  if not root.has(ctx, root.MARKED) then return 0 end
  return call("ZSCORE", ctx.keys.marks, jid) and TRACKED or 0
end

-- The jid itself, on a channel of its own, if the job is tracked.
function M.tracked(ctx, what, jid, r)
  if has(r.flags, TRACKED) then call("PUBLISH", ctx.keys.channel .. what, jid) end
end

-- A retry used up the last try. (The other form has no message for that.)
function M.exhausted(ctx, jid, r) M.tracked(ctx, "failed", jid, r) end

function M.marked(ctx, what, jid) call("PUBLISH", ctx.keys.channel .. what, jid) end

-- Something changed that a page may show: `queues`, `queue:<name>`, `failed`,
-- `job:<jid>`, `worker:<name>` and the like. Published once a call, and only
-- while someone watches.
function M.changed(ctx, name)
  if ctx.watched then ctx.watched[name] = true end
end

-- The same for a job and its queue.
function M.changed_job(ctx, jid, queue)
  M.changed(ctx, "job:" .. jid)
  M.changed(ctx, "queue:" .. queue)
end

function M.publish_changes(ctx)
  for name in pairs(ctx.watched) do call("PUBLISH", ctx.keys.changes, name) end
end

-- Messages of a topic are `scheduled`, `cancelled` or `completed`: those of args[first], args[first + step] ... for
-- which `done` has 1 (nil: all). Their bodies are not in it. Only while someone watches.
function M.messages(ctx, topic, what, args, first, step, done)
  local ids, count = {}, 0
  for i = 1, done and #done or ceil((#args - first + 1) / step) do
    if not done or done[i] == 1 then
      count = count + 1
      if count <= MOST_IDS then ids[count] = args[first + (i - 1) * step] end
    end
  end
  call("PUBLISH", ctx.keys.message_channel, '{"event":"message_' .. what .. '","topic":' .. encode(topic) ..
    ',"ids":' .. encode(ids) .. ',"count":' .. format("%d", count) .. "}")
end

-- To those who wait for the outcome of the job: there is one.
function M.ended(ctx, jid) call("PUBLISH", ctx.keys.result_channel .. jid, jid) end

return M
