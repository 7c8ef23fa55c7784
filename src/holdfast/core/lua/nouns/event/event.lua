-- event: messages to listeners. They are hints: one without a receiver is lost, and costs a third of a microsecond.
--
-- `ctx.events` is this module or `event_log`. What only `event_log` publishes is not sent here.
local record = require("base.record")
local root = require("base.root")
local M = {}

local TRACKED = record.FLAG.TRACKED
local MOST_IDS = 32 -- ids in one report of messages, which has the number of all messages too
local has = record.has

local function to_worker(ctx, event, jid, worker)
  call("PUBLISH", ctx.keys.worker_channel .. worker,
    '{"jid":' .. encode(jid) .. ',"event":"' .. event .. '","worker":' .. encode(worker) .. "}")
end

-- Notifies the holder of a lease that the lease was lost.
function M.lock_lost(ctx, jid, worker) to_worker(ctx, "lock_lost", jid, worker) end

-- Notifies the holder of a lease, if there is one (worker ~= ""), that the job was deleted.
function M.canceled(ctx, jid, _, worker)
  if worker ~= "" then to_worker(ctx, "canceled", jid, worker) end
end

-- Notifies a worker that it should take no more jobs, or take jobs again.
function M.quiet(ctx, worker, on)
  call("PUBLISH", ctx.keys.worker_channel .. worker,
    '{"event":"' .. (on and "quiet" or "resume") .. '","worker":' .. encode(worker) .. "}")
end

-- Requests the stack of a job from its worker, which sends it on the channel of `question`.
-- Returns how many subscribers received the request on this node.
function M.asked(ctx, worker, jid, question)
  return call("PUBLISH", ctx.keys.worker_channel .. worker, '{"event":"stack","jid":' .. encode(jid) .. ',"question":'
    .. encode(question) .. ',"worker":' .. encode(worker) .. "}")
end

-- Publishes the stack on that channel. Returns how many subscribers received it on this node.
function M.answered(ctx, question, stack) return call("PUBLISH", ctx.keys.stack_channel .. question, stack) end

-- Returns the flags of a new job: an earlier job with its jid may have been tracked. Nothing
-- is read if the root has no tracked jobs.
function M.flags(ctx, jid)
  if not root.has(ctx, root.MARKED) then return 0 end
  return call("ZSCORE", ctx.keys.marks, jid) and TRACKED or 0
end

-- Publishes the jid on the channel of event `what`, if the job is tracked.
function M.tracked(ctx, what, jid, r)
  if has(r.flags, TRACKED) then call("PUBLISH", ctx.keys.channel .. what, jid) end
end

-- The job failed because a retry used up its last attempt. (`event_log` has no message for that.)
function M.exhausted(ctx, jid, r) M.tracked(ctx, "failed", jid, r) end

function M.marked(ctx, what, jid) call("PUBLISH", ctx.keys.channel .. what, jid) end

-- Notes a change of something that a page may show: `queues`, `queue:<name>`, `failed`,
-- `job:<jid>`, `worker:<name>` and so on. It is published once a call, and only
-- while a client watches.
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
-- which `done` has 1 (nil: all). The report has no bodies, and is sent only while a client watches.
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

-- Notifies the clients that wait for the outcome of the job.
function M.ended(ctx, jid) call("PUBLISH", ctx.keys.result_channel .. jid, jid) end

return M
