-- recur: templates that put jobs again and again, and what people do with them.
local keys = require("base.keys")
local refuse = require("base.refuse")
local occurrences = require("nouns.recurrence.occurrence")
local options = require("nouns.job.options")
local queues = require("nouns.queue.queue")
local declaration = require("nouns.recurrence.declaration")
local plan = require("nouns.recurrence.plan")
local recurrence = require("nouns.recurrence.recurrence")
local M = {}

local LATE = 60000 -- ms: what was to come when a client computed it may be over for so long
local WHEN = { "cron", "zone", "jitter", "start", "end" } -- of a calendar: what its moments depend on

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

-- Whether two templates have the same moments.
local function same_calendar(one, other)
  for _, name in ipairs(WHEN) do
    if one[name] ~= other[name] then return false end
  end
  return true
end

-- The first moment of a template that follows a calendar. One that is set again with the same calendar keeps its plan,
-- of which `due` was the next moment.
local function start_plan(ctx, jid, t, old, due)
  local is_same = old and old.calendar and same_calendar(t.calendar, old.calendar) and plan.last(ctx, jid)
  if is_same and due > 0 and due < recurrence.NEVER_DUE then
    if t.calendar.tz ~= old.calendar.tz then -- the version that this plan was made with
      t.calendar.tz = old.calendar.tz
      recurrence.write_calendar(ctx, jid, t.calendar)
    end
    return due
  end
  local first, nominal = plan.set(ctx, jid, t.moments, ctx.now - LATE)
  recurrence.set_nominal(ctx, jid, nominal)
  return first
end

-- Makes a template, or replaces all of one but its count, whether it is paused and, if it `keeps`
-- that, when it is due. `t` has queue, klass, data, interval, backlog, priority, retries, tags, throttles
-- and options; the first occurrence is `offset` ms from now. Returns the jid.
function M.run(ctx, jid, t, offset, keeps)
  local old = recurrence.read(ctx, jid)
  -- Clients that know of calendars state the overlap of an interval: others mean no change of what they do not know.
  if old and old.calendar and not (t.calendar or t.overlap) then
    local advice = " follows a calendar, which this client does not know: change it by holdfast 0.3 or later"
    refuse.call("WRONG_STATE", jid .. advice)
  end
  if t.overlap == "allow" and not t.calendar then t.overlap = nil end
  local when = keeps and as_before(ctx, jid, t, old) or ctx.now + offset
  local due = old and recurrence.next(ctx, jid, old) or 0
  t.count, t.since, t.paused = old and old.count or 0, ctx.now, old and old.paused
  t.pause_ends = old and old.pause_ends
  t.throttles = others(t.throttles, old and old.queue or t.queue, t.queue)
  if old and t.declared then declaration.note_change(ctx, jid, old, t, t.declared) end
  queues.know(ctx, keys.of_queue(ctx, t.queue))
  if old then recurrence.leave(ctx, jid, old) end
  recurrence.write(ctx, jid, t)
  if t.calendar or old and old.calendar then recurrence.write_calendar(ctx, jid, t.calendar) end
  if not t.calendar and (t.overlap or old and old.overlap) then recurrence.write_overlap(ctx, jid, t.overlap) end
  if t.calendar then when = start_plan(ctx, jid, t, old, due) end
  if old or t.declared then declaration.write(ctx, jid, t.declared) end
  recurrence.place(ctx, jid, t, when)
  return jid
end

-- The calendar of a template as it is with a change; `moments`, if they change, are its plan. Returns when it is next.
local function change_calendar(ctx, jid, t, change, moments, when)
  local calendar = {}
  for _, name in ipairs(recurrence.OF_CALENDAR) do
    calendar[name] = change[name] or t.calendar and t.calendar[name]
  end
  calendar.overlap, t.calendar = t.overlap, calendar
  recurrence.write_calendar(ctx, jid, calendar)
  if not moments then return when end
  local first, nominal = plan.set(ctx, jid, moments, ctx.now)
  recurrence.set_nominal(ctx, jid, nominal)
  return first
end

-- Changes what `changes` names; jobs that were put stay as they are. A new interval
-- counts from the last occurrence; with a new `calendar` come its `moments`.
function M.update(ctx, jid, changes)
  local t, calendar, moments = found(ctx, jid), changes.calendar, changes.moments
  if t.calendar and changes.interval and not moments then
    refuse.call("WRONG_STATE", jid .. " follows a calendar, and has no interval: put it again to give it one")
  end
  if calendar and not t.calendar and not moments then
    refuse.call("WRONG_STATE", jid .. " has an interval, and follows no calendar")
  end
  if changes.vanished == 1 then declaration.vanish(ctx, jid) end
  changes.vanished = nil
  if not next(changes) then return 1 end
  local old, when = t.queue, recurrence.next(ctx, jid, t)
  if changes.queue then queues.know(ctx, keys.of_queue(ctx, changes.queue)) end -- it may have been forgotten
  if changes.interval and not moments then when = when + changes.interval - t.interval end
  local moved = changes.queue and changes.queue ~= old
  if moved then recurrence.leave(ctx, jid, t) end
  local follows = t.calendar
  for name, value in pairs(changes) do t[name] = value end
  t.calendar, t.throttles = follows, others(t.throttles, old, t.queue)
  recurrence.write(ctx, jid, t)
  if calendar or changes.overlap and follows then
    when = change_calendar(ctx, jid, t, calendar or {}, moments, when)
  elseif changes.overlap then
    recurrence.write_overlap(ctx, jid, t.overlap)
  end
  if moved or changes.interval or moments then recurrence.place(ctx, jid, t, when) end
  return 1
end

-- What a template that follows a calendar has beside the others, as (name, text) pairs: its own fields, the moment that
-- is next, how many got no job, and until when it is planned (ms). Empty for any other.
local function calendar_row(ctx, jid, t)
  local words = {}
  if not t.calendar then return words end
  local nominal, left_out = recurrence.nominal(ctx, jid)
  for _, name in ipairs(recurrence.OF_CALENDAR) do words[#words + 1], words[#words + 2] = name, t.calendar[name] end
  for name, value in pairs({ nominal = nominal, left_out = left_out, planned = plan.last(ctx, jid) or 0 }) do
    words[#words + 1], words[#words + 2] = name, format("%.0f", value)
  end
  return words
end

-- What else a template has, as (name, text) pairs: whether its jobs may overlap, how many occurrences got no job, when
-- its pause ends (ms, 0: not known).
local function more_of(ctx, jid, t)
  local _, left_out = recurrence.nominal(ctx, jid)
  return { "overlap", t.overlap or "allow", "left_out", format("%.0f", left_out),
    "until", format("%.0f", t.pause_ends or 0) }
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
    who, why, since, calendar_row(ctx, jid, t), more_of(ctx, jid, t), declaration.pairs(ctx, jid),
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

-- Stops a template from putting jobs, until a moment (0: until it is resumed), or lets it put them again. `who` and
-- `why` are kept for people. Returns whether that changed something.
function M.pause(ctx, jid, on, who, why, until_)
  local t = found(ctx, jid)
  if on and until_ > 0 and until_ <= ctx.now then refuse.call("BAD_ARGUMENT", "the pause is over already") end
  if on == (t.paused ~= nil) and (not on or until_ == (t.pause_ends or 0)) then return 0 end
  if on then recurrence.pause(ctx, jid, t, who, why, until_) else recurrence.resume(ctx, jid, t, ctx.now) end
  return 1
end

-- Puts one job of a template now, also of a paused one. Returns its jid.
function M.put_now(ctx, jid) return occurrences.put_now(ctx, jid, found(ctx, jid)) end

-- Templates that follow a calendar and of which no moment after `until_` is planned, as (jid, row) would have them:
-- jid, cron, zone, tz, jitter, start, end, the last moment that is planned.
function M.unplanned(ctx, until_, count, skip)
  local rows = {}
  for _, jid in ipairs(plan.short(ctx, until_, count, skip)) do
    local t = recurrence.read(ctx, jid)
    if t and t.calendar then
      local c = t.calendar
      rows[#rows + 1] = { jid, c.cron, c.zone, c.tz, c.jitter, c.start, c["end"], plan.last(ctx, jid) }
    end
  end
  return rows
end

-- Plans a template on, behind the moment `after`: only if that is the last one still, so of two who do it one does.
-- Without moments it is known to have no more. Returns whether it was so.
function M.extend(ctx, jid, after, moments, tz)
  local t = recurrence.read(ctx, jid)
  if not t or not t.calendar or plan.last(ctx, jid) ~= after then return 0 end
  if #moments == 0 then
    plan.finish(ctx, jid)
    return 1
  end
  local has_run_out = recurrence.next(ctx, jid, t) >= recurrence.NEVER_DUE
  plan.extend(ctx, jid, moments)
  -- A plan of two versions counts as of the older one: a worker that has the newer one plans it once more.
  if t.calendar.tz == "" or tz < t.calendar.tz then t.calendar.tz = tz end
  recurrence.write_calendar(ctx, jid, t.calendar)
  if has_run_out then
    local due, nominal = plan.take(ctx, jid)
    recurrence.set_nominal(ctx, jid, nominal)
    recurrence.place(ctx, jid, t, due)
  end
  return 1
end

-- Plans a template once more from now on, with newer data about zones than its plan was made with: what is due already
-- stays. Returns whether they are newer.
function M.replan(ctx, jid, moments, tz)
  local t = recurrence.read(ctx, jid)
  if not t or not t.calendar or not moments[1] or tz <= t.calendar.tz then return 0 end
  local when, kept = recurrence.next(ctx, jid, t), {}
  if when <= ctx.now then
    kept = { when, (recurrence.nominal(ctx, jid)) }
    plan.add_due(ctx, jid, kept, math.huge)
  end
  for i = 1, #moments, 2 do
    if moments[i] > ctx.now then kept[#kept + 1], kept[#kept + 2] = moments[i], moments[i + 1] end
  end
  if not kept[1] then return 0 end
  local first, nominal = plan.set(ctx, jid, kept, 0)
  t.calendar.tz = tz
  recurrence.write_calendar(ctx, jid, t.calendar)
  recurrence.set_nominal(ctx, jid, nominal)
  recurrence.place(ctx, jid, t, first)
  return 1
end

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
