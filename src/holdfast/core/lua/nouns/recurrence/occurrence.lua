-- occurrence: a template is due, so jobs are put for its occurrences.
--
-- A job is put at the moment of its occurrence, however late that is noticed, and
-- waits from then on. Missed occurrences are made up one by one, oldest first.
local keys = require("base.keys")
local refuse = require("base.refuse")
local record = require("base.record")
local links = require("nouns.dependency.dependency_links")
local extra = require("nouns.job.extra")
local job = require("nouns.job.job")
local options = require("nouns.job.options")
local queues = require("nouns.queue.queue")
local plan = require("nouns.recurrence.plan")
local recurrence = require("nouns.recurrence.recurrence")
local state = require("nouns.job.state")
local tag = require("nouns.job.tag")
local tally = require("nouns.queue.tally")
local unique = require("nouns.job.unique")
local M = {}

local PIECE = 512 -- templates looked at at once
local TRIES = 100 -- names found taken, after which the next call continues
local LATE = 60000 -- ms after which a moment counts as missed where missed ones get no job
local OWN_KEY = "\nrecurring " -- and the jid of a template: the key of its last job, which no put can have
local ENDLESS = 2 ^ 53
local HEAVY = 2048 -- bytes of data that cost about as much as a tag

-- The first occurrence to be made up: what is more than the backlog is left out.
local function first_of(ctx, t, score)
  local when = floor(score) * ctx.bounds.unit
  local missed = (ctx.now - when) / t.interval
  if t.backlog > 0 and missed > t.backlog then when = when + ceil(missed - t.backlog) * t.interval end
  return when
end

local function numbered(jid, count) return format("%s-%.0f", jid, count) end

-- The next free name: a job that exists is not taken over. Nil after TRIES of them.
local function next_name(ctx, jid, t)
  for _ = 1, TRIES do
    t.count = t.count + 1
    local name = numbered(jid, t.count)
    if call("EXISTS", ctx.keys.job .. name) == 0 then return name end
  end
end

-- The same where a name must be found: after TRIES of them it looks in steps that double.
local function sure_name(ctx, jid, t)
  local name, step = next_name(ctx, jid, t), 1
  while not name do
    t.count, step = t.count + step, 2 * step
    if call("EXISTS", ctx.keys.job .. numbered(jid, t.count)) == 0 then name = numbered(jid, t.count) end
  end
  return name
end

-- Gives a job the options of its template. Only what is set costs anything.
local function apply_options(ctx, queue, jid, r, t, when)
  if ctx.throttles.assign then ctx.throttles.assign(ctx, queue, jid, r, t.throttles) end
  if t.tags[1] then tag.set(ctx, jid, r, t.tags) end
  local opts = t.options
  if not next(opts) then return end
  local expires = opts.expires and when + opts.expires - ctx.now
  local own = options.of_template(opts, expires)
  options.set(ctx, jid, r, own, opts.losses)
end

-- The last job of a template whose jobs must not overlap, and its record, if it has not ended.
local function last_of(ctx, jid, t)
  if not t.overlap or t.overlap == "allow" then return nil end
  return unique.standing(ctx, unique.of(t.klass, OWN_KEY .. jid), "")
end

-- Whether an occurrence gets no job now: another job holds its unique key, or the last job of the template has not
-- ended, where they must not overlap. If it gets one: the job that it has to wait for, if any.
local function is_left_out(ctx, jid, t)
  local key = t.options.unique_key
  if key and unique.standing(ctx, unique.of(t.klass, key), "") then return true end
  local last, r = last_of(ctx, jid, t)
  -- One job waits at most: the last one has not started, or waits for the one before.
  if last and (t.overlap == "skip" or r.attempts == 0) then return true end
  return false, last
end

-- A job of a template takes the keys that others must not have meanwhile.
local function take_keys(ctx, jid, t, name)
  local key = t.options.unique_key
  if key then unique.take(ctx, unique.of(t.klass, key), t.options.unique_for or unique.END, name) end
  if t.overlap and t.overlap ~= "allow" then
    unique.take(ctx, unique.of(t.klass, OWN_KEY .. jid), unique.END, name)
  end
end

-- Puts one job for the occurrence at `when`, which the template names `nominal`; `sequence` is a number that was taken,
-- `after` (nil: none) a job for whose end it waits.
local function put(ctx, queue, template, jid, t, when, nominal, sequence, after)
  local r = {
    state = state.DEPENDS, flags = ctx.events.flags and ctx.events.flags(ctx, jid) or 0, priority = t.priority,
    attempts = 0, retries = t.retries, remaining = t.retries, losses = 0, created = when, queued = when,
    queue = queue.name, klass = t.klass, token = 0, popped = 0, ended = 0, worker = "", body = "", fields = {},
  }
  if t.options.losses then r.flags = r.flags + record.FLAG.BUDGETED end
  ctx.record.begin(r, when)
  job.set_body(ctx, jid, r, t.data)
  extra.set(ctx, jid, r, "s", template)
  extra.set(ctx, jid, r, "m", format("%.0f", nominal))
  apply_options(ctx, queue, jid, r, t, when)
  extra.flush(ctx, jid, r)
  take_keys(ctx, template, t, jid)
  if after then
    links.follow(ctx, jid, r, after)
    call("ZADD", queue.depends, ctx.now, jid)
    tally.count(ctx, queue, "later", 1)
  else
    state.move(r, state.WAITING)
    call("ZADD", queue.waiting, ctx.order.place(r, sequence, when, jid))
  end
  job.write(ctx, jid, r)
end

-- Puts one job of a template now, beside its occurrences, also while its last one has not ended: that one keeps the key
-- against overlaps. Returns its jid.
function M.put_now(ctx, jid, t)
  local key = t.options.unique_key
  local holder = key and unique.standing(ctx, unique.of(t.klass, key), "")
  if holder then refuse.call("NOT_UNIQUE", holder) end
  if last_of(ctx, jid, t) then t.overlap = nil end
  local queue, name = keys.of_queue(ctx, t.queue), sure_name(ctx, jid, t)
  local first, idle = queues.enter(ctx, queue, 1, ctx.bounds.hidden)
  put(ctx, queue, jid, name, t, ctx.now, ctx.now, first + 1)
  recurrence.write_count(ctx, jid, t)
  if idle then queues.signal(queue) end
  return name
end

-- How many jobs of this template may still be put in this call, and what each weighs.
local function allowed(t, budget)
  local weight = 1 + #t.tags + floor(#t.data / HEAVY)
  local most = floor(budget.weight / weight)
  if most < 1 and budget.fresh then most = 1 end
  return most < budget.jobs and most or budget.jobs, weight
end

-- Where the moments begin that get a job: of those that were missed only some do.
local function first_kept(ctx, t, moments)
  local missed, count = t.calendar.missed, #moments / 2
  if missed == "skip" then return ctx.now - moments[#moments - 1] > LATE and count + 1 or count end
  local most = missed == "once" and 1 or missed == "all" and count or tonumber(missed) or 1
  return math.max(1, count - most + 1)
end

-- Puts up to `most` jobs of a template that follows a calendar, for its moments from the one at `i` on. Returns how
-- many, which moment is the next, and how many got none.
local function put_moments(ctx, queue, jid, t, moments, i, most)
  local first, idle = queues.enter(ctx, queue, 0, ctx.bounds.hidden)
  local done, ready, count, left_out = 0, 0, #moments / 2, i - 1
  while i <= count and done < most do
    local out, after = is_left_out(ctx, jid, t)
    if out then -- and so are the others
      left_out, i = left_out + count - i + 1, count + 1
      break
    end
    local name = next_name(ctx, jid, t)
    if not name then break end
    done, ready = done + 1, after and ready or ready + 1
    put(ctx, queue, jid, name, t, moments[2 * i - 1], moments[2 * i], first + ready, after)
    i = i + 1
  end
  if ready > 0 then queues.enter(ctx, queue, ready, ctx.bounds.hidden) end
  return done, i, left_out, ready > 0 and idle
end

-- Whether each moment gets a job, whatever became of the ones before.
local function takes_all(t)
  return t.calendar.missed == "all" and (t.overlap or "allow") == "allow" and not t.options.unique_key
end

-- Puts jobs of a template that follows a calendar, and takes what it has done or left out off its plan.
-- Returns how many, and whether it is still due.
local function from_plan(ctx, queue, jid, t, most)
  local moments = { floor(tonumber(call("ZSCORE", queue.recurring, jid))), t.calendar.nominal }
  plan.add_due(ctx, jid, moments, takes_all(t) and most or ENDLESS)
  local done, i, left_out, idle = put_moments(ctx, queue, jid, t, moments, first_kept(ctx, t, moments), most)
  recurrence.leave_out(ctx, jid, left_out)
  if i > 1 then
    plan.drop(ctx, jid, i - 2)
    local due, nominal = plan.take(ctx, jid)
    recurrence.write_count(ctx, jid, t, nominal or 0)
    call("ZADD", queue.recurring, due or recurrence.NEVER_DUE, jid)
  else
    recurrence.write_count(ctx, jid, t)
  end
  if idle then queues.signal(queue) end
  return done, i <= #moments / 2
end

-- The same of a template with an interval, from the occurrence at `when` on.
local function from_interval(ctx, queue, jid, t, most)
  local when = first_of(ctx, t, tonumber(call("ZSCORE", queue.recurring, jid)))
  local first, idle = queues.enter(ctx, queue, 0, ctx.bounds.hidden)
  local done, ready = 0, 0
  while when <= ctx.now and done < most do
    local out, after = is_left_out(ctx, jid, t)
    if out then -- and so are the others
      local count = floor((ctx.now - when) / t.interval) + 1
      recurrence.leave_out(ctx, jid, count)
      when = when + count * t.interval
      break
    end
    local name = next_name(ctx, jid, t)
    if not name then break end
    done, ready = done + 1, after and ready or ready + 1
    put(ctx, queue, jid, name, t, when, when, first + ready, after)
    when = when + t.interval
  end
  if ready > 0 then queues.enter(ctx, queue, ready, ctx.bounds.hidden) end
  recurrence.write_count(ctx, jid, t)
  call("ZADD", queue.recurring, when / ctx.bounds.unit, jid)
  if ready > 0 and idle then queues.signal(queue) end
  return done, when <= ctx.now
end

-- Puts the jobs of one template that is due. Returns whether there is room for another.
local function from_template(ctx, queue, jid, budget)
  local t = recurrence.read(ctx, jid)
  if not t then
    call("ZREM", queue.recurring, jid) -- an orphan: its template is gone
    return true
  end
  if t.paused then -- its pause is over
    recurrence.resume(ctx, jid, t, t.pause_ends)
    if recurrence.next(ctx, jid, t) > ctx.now then return true end
  end
  local most, weight = allowed(t, budget)
  local done, is_due = (t.calendar and from_plan or from_interval)(ctx, queue, jid, t, most)
  budget.jobs, budget.weight, budget.fresh = budget.jobs - done, budget.weight - done * weight, false
  return budget.jobs > 0 and not is_due
end

-- Puts up to `count` jobs for the templates of a queue that are due, by their time. Returns
-- how many.
function M.run(ctx, queue, count)
  local budget = { jobs = count, weight = ctx.bounds.weight, fresh = true }
  while budget.jobs >= 1 do
    local due = recurrence.due(ctx, queue, budget.jobs < PIECE and floor(budget.jobs) or PIECE)
    for i = 1, #due do
      if not from_template(ctx, queue, due[i], budget) then return count - budget.jobs end
    end
    if #due < PIECE then break end
  end
  return count - budget.jobs
end

return M
