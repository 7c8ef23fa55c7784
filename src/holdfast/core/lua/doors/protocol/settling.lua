-- settling: what the holder of a lock says, and what others do to jobs.
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

-- The record of a job that this worker runs. `idle` and `taken` end the sentences for
-- when it does not, which `who` begins.
local function held(at, jid, worker, who, idle, taken)
  local r, so = job.read(at, jid), nil
  if not r then
    so = "does not exist"
  elseif r.state ~= state.RUNNING then
    so = idle .. state.NAME[r.state]
  elseif r.worker ~= worker then
    so = taken .. " another worker: " .. r.worker
  end
  if so then words.refuse(words.of_job(at, who, jid) .. so) end
  return r
end

M["job.complete"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local worker = words.text(args, 4, 'Complete(): Arg "worker" missing')
  local queue = words.text(args, 5, 'Complete(): Arg "queue_name" missing')
  local data = words.data(args, 6, 'Complete(): Arg "data" missing or not JSON')
  local r = held(at, jid, worker, "Complete", "is not currently running: ", "has been handed out to")
  if r.queue ~= queue then
    words.refuse(words.of_job(at, "Complete", jid) .. "running in another queue: " .. r.queue)
  end
  complete.one(at, jid, r, data)
  return "complete"
end

M["job.fail"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local worker = words.text(args, 4, 'Fail(): Arg "worker" missing')
  local group = words.text(args, 5, 'Fail(): Arg "group" missing')
  local message = words.text(args, 6, 'Fail(): Arg "message" missing')
  local data = args[7] and words.data(args, 7, 'Fail(): Arg "data" not JSON') or ""
  local r = held(at, jid, worker, "Fail", "not currently running: ", "running with")
  fail.one(at, group, message, jid, r, data)
  return jid
end

M["job.retry"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  words.text(args, 4, 'Retry(): Arg "queue_name" missing') -- and the job's own queue is used
  local worker = words.text(args, 5, 'Retry(): Arg "worker" missing')
  local delay = words.number_or(args, 6, 0, 'Retry(): Arg "delay" not a number')
  local r = held(at, jid, worker, "Retry", "is not currently running: ", "has been given to")
  return retry.one(at, delay * 1000, args[7] or "", args[8] or "", jid, r, "")
end

M["job.heartbeat"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local worker = words.text(args, 4, 'Heartbeat(): Arg "worker" missing')
  local data = args[5] and words.data(args, 5, 'Heartbeat(): Arg "data" not JSON') or ""
  local r = held(at, jid, worker, "Heartbeat", "not currently running: ", "given out to")
  return heartbeat.run(at, 0, { worker, jid, r.token, data }, 1, heartbeat.WIDTH)[1] / 1000
end

M["job.timeout"] = function(at, args)
  for i = 3, #args do
    local r = job.read(at, args[i])
    if not r or r.state ~= state.RUNNING then words.refuse("Timeout(): Job " .. args[i] .. " not running") end
  end
  timeout.run(at, args, 3, #args)
end

M["job.cancel"] = function(at, args)
  cancel.run(at, args, 3, #args)
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
