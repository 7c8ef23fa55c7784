-- cancel: jobs are deleted, wherever they are, all of them or none. A completed one is
-- left alone.
local record = require("base.record")
local refuse = require("base.refuse")
local dependency = require("nouns.dependency.dependency")
local ending = require("nouns.job.ending")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local tag = require("nouns.job.tag")
local M = {}

local PLAIN, RUNNING, NAMED, TAG = 3, 3, 16, 2

-- What may change because another job is deleted: a slot comes back, or it was that what the job waited for.
local MAY_CHANGE = { [state.THROTTLED] = true, [state.DEPENDS] = true, [state.FAILED] = true }

-- A job that is there and not complete, or nil.
local function open(ctx, jid)
  local r = job.read(ctx, jid)
  return r and r.state ~= state.COMPLETE and r or nil
end

-- The jobs to delete: their records by jid, and the set of all that were named.
local function find(ctx, args, first, last)
  local records, given = {}, {}
  for i = first, last do
    local jid = args[i]
    if not given[jid] then given[jid], records[jid] = true, open(ctx, jid) end
  end
  return records, given
end

-- One that waits for this job and would wait for ever. `left` is how many dependencies
-- may still be looked at; what is left of that is returned, too.
local function left_behind(ctx, jid, r, given, left)
  local children = dependency.children(ctx, jid, r, left < 1 / 0 and left + 1 or 0)
  for i = 1, #children do
    local child = children[i]
    if not given[child] and dependency.waits_for(ctx, child, jid) then return left, child end
  end
  return left - #children, nil
end

-- What deleting a job takes, without its dependencies, in the time that one of these takes.
function M.weight_of(ctx, jid, r)
  if record.is_plain(r.flags) then return PLAIN end
  local running = r.state == state.RUNNING and RUNNING or 0
  local named = record.has(r.flags, record.FLAG.NAMED) and NAMED or 0
  return PLAIN + running + named + TAG * #tag.of(ctx, jid, r)
end

local function refuse_child(jid, child)
  local advice = "; cancel it too, or cancel with dependents=True"
  refuse.call("DEPENDENCY_REFUSED", jid .. " is a dependency of " .. child .. ", which is not cancelled" .. advice)
end

-- Refuses a set that is not closed, or too heavy for one call.
local function check(ctx, args, first, last, records, given, behind)
  local left = ctx.bounds.links or 1 / 0
  for i = first, last do
    local jid = args[i]
    local r, child = records[jid], nil
    if r then
      left = left - dependency.count(ctx, jid, r) - (ctx.bounds.links and M.weight_of(ctx, jid, r) or 0)
      left, child = left_behind(ctx, jid, r, given, left)
    end
    if child then behind(jid, child) end
    if left < 0 then
      refuse.call("TOO_MANY", "at most " .. ctx.bounds.links ..
        " a call: a job counts 3, one that runs 6, with throttles 16 more, a tag 2, a dependency 1")
    end
  end
end

-- Refused if a job that is not given waits for one that is; `behind(jid, child)` (nil: the
-- native refusal) refuses. `who` (nil: not given) cancels. Returns per jid 1 (cancelled) or 0
-- (unknown, or complete).
function M.run(ctx, args, first, last, behind, who)
  local records, given = find(ctx, args, first, last)
  check(ctx, args, first, last, records, given, behind or refuse_child)
  local reply, marked = {}, false
  for i = first, last do
    local jid = args[i]
    local r = records[jid]
    if r and MAY_CHANGE[r.state] then r = open(ctx, jid) end
    if r and ending.cancel(ctx, jid, r, given, who or "") then marked = true end
    reply[#reply + 1], records[jid] = r and 1 or 0, nil
  end
  if marked then ctx.cancelled.sweep(ctx) end
  return reply
end

return M
