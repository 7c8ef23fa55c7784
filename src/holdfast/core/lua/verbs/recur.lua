-- recur: templates that put jobs again and again, and what people do with them.
local keys = require("base.keys")
local refuse = require("base.refuse")
local occurrences = require("nouns.recurrence.occurrence")
local options = require("nouns.job.options")
local queues = require("nouns.queue.queue")
local recurrence = require("nouns.recurrence.recurrence")
local M = {}

-- The throttle that binds all jobs of a queue.
local function own(name) return "ql:q:" .. name end

-- These throttles without those of the queues they come from and go to; `bare` stays.
local function others(ids, old, new)
  local kept = { bare = ids.bare }
  for _, id in ipairs(ids) do
    if id ~= own(old) and id ~= own(new) then kept[#kept + 1] = id end
  end
  return kept
end

local function found(ctx, jid)
  return recurrence.read(ctx, jid) or refuse.call("JOB_NOT_FOUND", "no recurring job " .. jid)
end

-- When a template that is set again is due next: as before, a new interval counted from
-- the last occurrence. Nil if there was none, or it has lost its place.
local function as_before(ctx, jid, t, old)
  local due = old and recurrence.next(ctx, jid, old) or 0
  return due > 0 and due + t.interval - old.interval or nil
end

-- Makes a template, or replaces all of one but its count, whether it is paused and, if it `keeps`
-- that, when it is due. `t` has queue, klass, data, interval, backlog, priority, retries, tags, throttles
-- and options; the first occurrence is `offset` ms from now. Returns the jid.
function M.run(ctx, jid, t, offset, keeps)
  local old = recurrence.read(ctx, jid)
  local when = keeps and as_before(ctx, jid, t, old) or ctx.now + offset
  t.count, t.since, t.paused = old and old.count or 0, ctx.now, old and old.paused
  t.throttles = others(t.throttles, old and old.queue or t.queue, t.queue)
  queues.know(ctx, keys.of_queue(ctx, t.queue))
  if old then recurrence.leave(ctx, jid, old) end
  recurrence.write(ctx, jid, t)
  recurrence.place(ctx, jid, t, when)
  return jid
end

-- Changes what `changes` names; jobs that were put stay as they are. A new interval
-- counts from the last occurrence.
function M.update(ctx, jid, changes)
  local t = found(ctx, jid)
  local old, when = t.queue, recurrence.next(ctx, jid, t)
  if changes.queue then queues.know(ctx, keys.of_queue(ctx, changes.queue)) end -- it may have been forgotten
  if changes.interval then when = when + changes.interval - t.interval end
  local moved = changes.queue and changes.queue ~= old
  if moved then recurrence.leave(ctx, jid, t) end
  for name, value in pairs(changes) do t[name] = value end
  t.throttles = others(t.throttles, old, t.queue)
  recurrence.write(ctx, jid, t)
  if moved or changes.interval then recurrence.place(ctx, jid, t, when) end
  return 1
end

local function row(ctx, jid)
  local t = recurrence.read(ctx, jid)
  if not t then return false end
  local throttles = t.throttles
  throttles[#throttles + 1] = own(t.queue)
  local who, why, since = recurrence.pause_of(ctx, jid, t)
  return {
    jid, t.queue, t.klass, t.data, t.interval, t.backlog, t.priority, t.retries, t.count, recurrence.next(ctx, jid, t),
    t.tags, throttles, options.pairs(t.options), t.since, t.paused and 1 or 0,
    who, why, since,
  }
end

-- A row per jid, false for an unknown one.
function M.get(ctx, args, first, last)
  local rows = {}
  for i = first, last do rows[#rows + 1] = row(ctx, args[i]) end
  return rows
end

local function without(tags, gone)
  local kept = {}
  for _, tag in ipairs(tags) do
    if not gone[tostring(tag)] then kept[#kept + 1] = tag end
  end
  return kept
end

-- Adds or removes tags of a template, which the index by tag does not hold. Returns
-- those it has then, in their order.
function M.tag(ctx, jid, adds, args, first, last)
  local t, named = found(ctx, jid), {}
  if adds then
    for _, tag in ipairs(t.tags) do named[tostring(tag)] = true end
  end
  for i = first, last do
    if adds and not named[args[i]] then t.tags[#t.tags + 1] = args[i] end
    named[args[i]] = true
  end
  if not adds then t.tags = without(t.tags, named) end
  if #t.tags > ctx.bounds.labels then refuse.call("TOO_MANY", "at most " .. ctx.bounds.labels .. " tags a job") end
  recurrence.write_tags(ctx, jid, t)
  return t.tags
end

-- Stops a template from putting jobs, or lets it put them again. `who` and `why` are kept for people.
-- Returns whether that changed something.
function M.pause(ctx, jid, on, who, why)
  local t = found(ctx, jid)
  if on == (t.paused ~= nil) then return 0 end
  if on then recurrence.pause(ctx, jid, t, who, why) else recurrence.resume(ctx, jid, t) end
  return 1
end

-- Puts one job of a template now, also of a paused one. Returns its jid.
function M.put_now(ctx, jid) return occurrences.put_now(ctx, jid, found(ctx, jid)) end

-- Deletes templates; their jobs stay. Returns per jid 1, or 0 if it is unknown.
function M.cancel(ctx, args, first, last)
  local reply = {}
  for i = first, last do
    local t = recurrence.read(ctx, args[i])
    if t then recurrence.delete(ctx, args[i], t) end
    reply[#reply + 1] = t and 1 or 0
  end
  return reply
end

return M
