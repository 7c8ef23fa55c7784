-- settling: what the holder of a lock says, and what others do to jobs.
local held = require("doors.protocol.held")
local words = require("doors.protocol.words")
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

M["job.complete"] = function(at, args)
  local jid, worker, queue, data = held.completing(args)
  complete.one(at, jid, held.to_complete(at, jid, worker, queue), data)
  return "complete"
end

M["job.fail"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local worker = words.text(args, 4, 'Fail(): Arg "worker" missing')
  local group = words.text(args, 5, 'Fail(): Arg "group" missing')
  local message = words.text(args, 6, 'Fail(): Arg "message" missing')
  local data = args[7] and words.data(args, 7, 'Fail(): Arg "data" not JSON') or ""
  local r = held.job(at, jid, worker, "Fail", "not currently running: ", "running with")
  fail.one(at, group, message, jid, r, data)
  return jid
end

M["job.retry"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  words.text(args, 4, 'Retry(): Arg "queue_name" missing') -- and the job's own queue is used
  local worker = words.text(args, 5, 'Retry(): Arg "worker" missing')
  local delay = words.number_or(args, 6, 0, 'Retry(): Arg "delay" not a number')
  local r = held.job(at, jid, worker, "Retry", "is not currently running: ", "has been given to")
  return retry.one(at, delay * 1000, args[7], args[8], jid, r, "")
end

M["job.heartbeat"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local worker = words.text(args, 4, 'Heartbeat(): Arg "worker" missing')
  local data = args[5] and words.data(args, 5, 'Heartbeat(): Arg "data" not JSON') or ""
  local r = held.job(at, jid, worker, "Heartbeat", "not currently running: ", "given out to")
  return heartbeat.run(at, 0, { worker, jid, r.token, data }, 1, heartbeat.WIDTH)[1] / 1000
end

M["job.timeout"] = function(at, args)
  for i = 3, #args do
    local r = job.read(at, args[i])
    if not r or r.state ~= state.RUNNING then words.refuse("Timeout(): Job " .. args[i] .. " not running") end
  end
  timeout.run(at, args, 3, #args)
end

local function refuse_cancel(jid, child)
  words.refuse("Cancel(): " .. jid .. " is a dependency of " .. child .. " but is not mentioned to be canceled")
end

M["job.cancel"] = function(at, args)
  cancel.run(at, args, 3, #args, refuse_cancel)
  local jids = {}
  for i = 3, #args do jids[i - 2] = args[i] end
  return jids
end

M["job.setPriority"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local priority = words.number(args, 4, 'Priority(): Arg "priority" missing or not a number')
  if reprioritise.run(at, priority, args, 3, 3)[1] == 0 then
    words.refuse("Priority(): Job " .. jid .. " does not exist")
  end
  return priority
end

return M
