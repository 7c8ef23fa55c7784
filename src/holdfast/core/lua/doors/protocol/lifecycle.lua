-- lifecycle: what the holder of a lock says, and what others do to jobs.
local held_job = require("doors.protocol.held_job")
local arguments = require("doors.protocol.arguments")
local job = require("nouns.job")
local state = require("nouns.state")
local cancel = require("verbs.cancel")
local complete = require("verbs.complete")
local fail = require("verbs.fail")
local heartbeat = require("verbs.heartbeat")
local reprioritise = require("verbs.reprioritise")
local retry = require("verbs.retry")
local timeout = require("verbs.timeout")
local M = {}

M["job.complete"] = function(ctx, args)
  local jid, worker, queue, data = held_job.completing(args)
  complete.one(ctx, jid, held_job.to_complete(ctx, jid, worker, queue), data)
  return "complete"
end

M["job.fail"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  local worker = arguments.text(args, 4, 'Fail(): Arg "worker" missing')
  local group = arguments.text(args, 5, 'Fail(): Arg "group" missing')
  local message = arguments.text(args, 6, 'Fail(): Arg "message" missing')
  local data = args[7] and arguments.data(args, 7, 'Fail(): Arg "data" not JSON') or ""
  local r = held_job.job(ctx, jid, worker, "Fail", "not currently running: ", "running with")
  fail.one(ctx, group, message, jid, r, data)
  return jid
end

M["job.retry"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  arguments.text(args, 4, 'Retry(): Arg "queue_name" missing') -- and the job's own queue is used
  local worker = arguments.text(args, 5, 'Retry(): Arg "worker" missing')
  local delay = arguments.number_or(args, 6, 0, 'Retry(): Arg "delay" not a number')
  local r = held_job.job(ctx, jid, worker, "Retry", "is not currently running: ", "has been given to")
  return retry.one(ctx, delay * 1000, args[7], args[8], jid, r, "")
end

M["job.heartbeat"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  local worker = arguments.text(args, 4, 'Heartbeat(): Arg "worker" missing')
  local data = args[5] and arguments.data(args, 5, 'Heartbeat(): Arg "data" not JSON') or ""
  local r = held_job.job(ctx, jid, worker, "Heartbeat", "not currently running: ", "given out to")
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
