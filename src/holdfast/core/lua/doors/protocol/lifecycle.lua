-- lifecycle: what the holder of a lock reports, and what others do to jobs.
local arguments = require("doors.protocol.arguments")
local cycle = require("nouns.dependency.dependency_cycle")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local cancel = require("verbs.cancel")
local complete = require("verbs.complete")
local complete_x = require("verbs.complete_x")
local fail = require("verbs.fail")
local heartbeat = require("verbs.heartbeat")
local reprioritise = require("verbs.reprioritise")
local retry = require("verbs.retry")
local timeout = require("verbs.timeout")
local M = {}

local NONE = {}
local FIRST = 7 -- the argument behind `jid worker queue data`

-- The record of a job that this worker runs. `idle` and `taken` end the sentences for
-- when it does not, which `who` begins.
local function held_job(ctx, jid, worker, who, idle, taken)
  local r, so = job.read(ctx, jid), nil
  if not r then
    so = "does not exist"
  elseif r.state ~= state.RUNNING then
    so = idle .. state.NAME[r.state]
  elseif r.worker ~= worker then
    so = taken .. " another worker: " .. r.worker
  end
  if so then arguments.refuse(arguments.of_job(ctx, who, jid) .. so) end
  return r
end

-- jid worker queue data, with which a completion begins.
local function completing(args)
  return arguments.text(args, 3, arguments.NO_JID), arguments.text(args, 4, 'Complete(): Arg "worker" missing'),
    arguments.text(args, 5, 'Complete(): Arg "queue_name" missing'),
    arguments.data(args, 6, 'Complete(): Arg "data" missing or not JSON')
end

-- The record of a job that may be completed so.
local function to_complete(ctx, jid, worker, queue)
  local r = held_job(ctx, jid, worker, "Complete", "is not currently running: ", "has been handed out to")
  if r.queue ~= queue then
    arguments.refuse(arguments.of_job(ctx, "Complete", jid) .. "running in another queue: " .. r.queue)
  end
  return r
end

M["job.complete"] = function(ctx, args)
  local jid, worker, queue, data = completing(args)
  complete.one(ctx, jid, to_complete(ctx, jid, worker, queue), data)
  return "complete"
end

-- The next queue, and the delay and parents in the pairs behind it; nil: it ends here. A name
-- without a value is left out. Two released clients send the word `next` before the queue:
-- then there is an even number of words.
local function next_place(args)
  local first = args[FIRST] == "next" and #args % 2 == 0 and FIRST + 1 or FIRST
  if not args[first] then return nil end
  local how = { next_queue = args[first], delay = 0, parents = NONE }
  for i = first + 1, #args - 1, 2 do
    if args[i] == "delay" then
      how.delay = arguments.number(args, i + 1, 'Complete(): Arg "delay" not a number') * 1000
    elseif args[i] == "depends" then
      how.parents = arguments.names(args[i + 1], "depends")
    end
  end
  return how
end

-- job.completeAndRequeue jid worker queue data next_queue [key value]...
M["job.completeAndRequeue"] = function(ctx, args)
  local jid, worker, queue, data = completing(args)
  local how = next_place(args)
  local r = to_complete(ctx, jid, worker, queue)
  if not how then
    complete.one(ctx, jid, r, data)
    return state.NAME[state.COMPLETE]
  end
  local refused = cycle.refusal(ctx, {}, jid, r, how.parents)
  if refused then arguments.refuse_code("Complete", refused) end
  how.data = data
  return complete_x.continue(ctx, jid, r, how, NONE)
end

M["job.fail"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  local worker = arguments.text(args, 4, 'Fail(): Arg "worker" missing')
  local group = arguments.text(args, 5, 'Fail(): Arg "group" missing')
  local message = arguments.text(args, 6, 'Fail(): Arg "message" missing')
  local data = args[7] and arguments.data(args, 7, 'Fail(): Arg "data" not JSON') or ""
  local r = held_job(ctx, jid, worker, "Fail", "not currently running: ", "running with")
  fail.one(ctx, group, message, jid, r, data)
  return jid
end

M["job.retry"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  arguments.text(args, 4, 'Retry(): Arg "queue_name" missing') -- and the job's own queue is used
  local worker = arguments.text(args, 5, 'Retry(): Arg "worker" missing')
  local delay = arguments.number_or(args, 6, 0, 'Retry(): Arg "delay" not a number')
  local r = held_job(ctx, jid, worker, "Retry", "is not currently running: ", "has been given to")
  return retry.one(ctx, delay * 1000, args[7], args[8], jid, r, "")
end

M["job.heartbeat"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  local worker = arguments.text(args, 4, 'Heartbeat(): Arg "worker" missing')
  local data = args[5] and arguments.data(args, 5, 'Heartbeat(): Arg "data" not JSON') or ""
  local r = held_job(ctx, jid, worker, "Heartbeat", "not currently running: ", "given out to")
  return heartbeat.run(ctx, 0, { worker, jid, r.token, data }, 1, heartbeat.WIDTH)[1] / 1000
end

M["job.timeout"] = function(ctx, args)
  for i = 3, #args do
    local r = job.read(ctx, args[i])
    if not r or r.state ~= state.RUNNING then arguments.refuse("Timeout(): Job " .. args[i] .. " not running") end
  end
  timeout.run(ctx, args, 3, #args)
end

local function refuse_cancel(jid, child)
  arguments.refuse("Cancel(): " .. jid .. " is a dependency of " .. child .. " but is not mentioned to be canceled")
end

M["job.cancel"] = function(ctx, args)
  cancel.run(ctx, args, 3, #args, refuse_cancel)
  local jids = {}
  for i = 3, #args do jids[i - 2] = args[i] end
  return jids
end

M["job.setPriority"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  local priority = arguments.number(args, 4, 'Priority(): Arg "priority" missing or not a number')
  if reprioritise.run(ctx, priority, args, 3, 3)[1] == 0 then
    arguments.refuse("Priority(): Job " .. jid .. " does not exist")
  end
  return priority
end

return M
