-- event: hints for whoever listens. A message to nobody costs a third of a microsecond.
--
-- `ctx.events` is this or `event_log`; a name that this one lacks is not told here.
local record = require("base.record")
local root = require("base.root")
local M = {}

local TRACKED = record.FLAG.TRACKED
local has = record.has

local function to_worker(ctx, event, jid, worker)
  call("PUBLISH", ctx.keys.worker_channel .. worker,
    '{"jid":' .. encode(jid) .. ',"event":"' .. event .. '","worker":' .. encode(worker) .. "}")
end

-- The holder of a lease is told that it lost it.
function M.lock_lost(ctx, jid, worker) to_worker(ctx, "lock_lost", jid, worker) end

-- The holder of a lease, if there is one (worker ~= ""), is told that the job is gone.
function M.canceled(ctx, jid, _, worker)
  if worker ~= "" then to_worker(ctx, "canceled", jid, worker) end
end

-- A worker is told to take no more jobs, or to take jobs again.
function M.quiet(ctx, worker, on)
  call("PUBLISH", ctx.keys.worker_channel .. worker,
    '{"event":"' .. (on and "quiet" or "resume") .. '","worker":' .. encode(worker) .. "}")
end

-- A worker is asked where its job is just now; `question` names the answer. Returns how
-- many heard that on this node.
function M.asked(ctx, worker, jid, question)
  return call("PUBLISH", ctx.keys.worker_channel .. worker, '{"event":"stack","jid":' .. encode(jid) .. ',"question":'
    .. encode(question) .. ',"worker":' .. encode(worker) .. "}")
end

-- Whoever asked is answered. Returns how many heard that on this node.
function M.answered(ctx, question, answer) return call("PUBLISH", ctx.keys.answer_channel .. question, answer) end

-- The flags of a fresh job: somebody may have tracked an earlier one of that name. A root
-- without tracked jobs is not asked.
function M.flags(ctx, jid)
  if not root.has(ctx, root.MARKED) then return 0 end
  return call("ZSCORE", ctx.keys.marks, jid) and TRACKED or 0
end

-- The jid itself, on a channel of its own, if somebody tracks the job.
function M.tracked(ctx, what, jid, r)
  if has(r.flags, TRACKED) then call("PUBLISH", ctx.keys.channel .. what, jid) end
end

-- A retry used up the last try. (The other form says nothing there.)
function M.exhausted(ctx, jid, r) M.tracked(ctx, "failed", jid, r) end

function M.marked(ctx, what, jid) call("PUBLISH", ctx.keys.channel .. what, jid) end

-- Something changed that a page may show: `queues`, `queue:<name>`, `failed`,
-- `job:<jid>`, `worker:<name>` and the like. Told once a call, and only while
-- somebody watches.
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

-- Whoever waits for the outcome of the job hears that there is one.
function M.ended(ctx, jid) call("PUBLISH", ctx.keys.result_channel .. jid, jid) end

return M
