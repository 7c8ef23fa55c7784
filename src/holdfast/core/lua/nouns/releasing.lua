-- releasing: a job is complete, and those that waited for it may go.
local late = require("base.late")
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local dependency = require("nouns.dependency")
local job = require("nouns.job")
local state = require("nouns.state")
local M = {}

local call
late.bind(function() call = redis.call end)

-- All parents are complete: the job is due when it was to be, or ready.
local function release(at, jid, r)
  local queue, due = keys.of_queue(at, r.queue), tonumber(call("HGET", at.keys.extra .. jid, "w") or nil)
  call("ZREM", queue.depends, jid)
  dependency.settle(at, jid, r)
  if due then
    state.move(r, state.SCHEDULED)
    r.ended = 0
    job.schedule(at, queue, jid, due)
  else
    state.move(r, state.WAITING)
    job.make_ready(at, queue, jid, r)
  end
  job.write(at, jid, r)
end

-- A child learns that one of its parents is complete.
local function tell(at, parent, jid)
  local left = dependency.close(at, jid, parent)
  if not left or left > 0 then return end
  local r = job.read(at, jid)
  if r and r.state == state.DEPENDS then release(at, jid, r) end
end

-- Tells up to so many children of a complete job. Says whether there are more.
local function tell_some(at, parent, most)
  local children = call("SPOP", at.keys.dependents .. parent, most)
  for i = 1, #children do tell(at, parent, children[i]) end
  return #children == most and call("EXISTS", at.keys.dependents .. parent) == 1
end

-- A job is complete: its children are told, the first of them in this call.
function M.released(at, jid, r)
  r.flags = record.without(r.flags, record.FLAG.DEPENDENTS)
  if not tell_some(at, jid, at.bounds.released) then return end
  call("RPUSH", at.keys.releasing, jid)
  root.set_flag(at, root.RELEASING, true)
end

-- Goes on where an earlier call stopped.
function M.go_on(at)
  local parent = call("LINDEX", at.keys.releasing, 0)
  if parent and tell_some(at, parent, at.bounds.released) then return end
  call("LPOP", at.keys.releasing)
  if call("EXISTS", at.keys.releasing) == 0 then root.set_flag(at, root.RELEASING, false) end
end

return M
