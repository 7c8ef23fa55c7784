-- spawning: a template is due, so jobs are put for its occurrences.
--
-- A job is put at the moment of its occurrence, however late that is noticed, and
-- waits from then on. Missed occurrences are made up one by one, oldest first.
local late = require("base.late")
local record = require("base.record")
local extra = require("nouns.extra")
local job = require("nouns.job")
local options = require("nouns.options")
local queues = require("nouns.queue")
local recurrence = require("nouns.recurrence")
local state = require("nouns.state")
local tag = require("nouns.tag")
local M = {}

local PIECE = 512 -- templates looked at at once
local TRIES = 100 -- names found taken, after which the next call goes on
local HEAVY = 2048 -- bytes of data that cost about as much as a tag

local call, floor, ceil, format
late.bind(function() call, floor, ceil, format = redis.call, math.floor, math.ceil, string.format end)

-- The first occurrence to be made up: what is more than the backlog is left out.
local function first_of(at, t, score)
  local when = floor(score) * at.bounds.unit
  local missed = (at.now - when) / t.interval
  if t.backlog > 0 and missed > t.backlog then when = when + ceil(missed - t.backlog) * t.interval end
  return when
end

-- The next free name: a job that exists is not taken over. Nil after so many tries.
local function next_name(at, jid, t)
  for _ = 1, TRIES do
    t.count = t.count + 1
    local name = format("%s-%.0f", jid, t.count)
    if call("EXISTS", at.keys.job .. name) == 0 then return name end
  end
end

-- What the template wishes for its jobs. Only what is wished costs anything.
local function dress(at, queue, jid, r, t, when)
  if at.throttles.assign then at.throttles.assign(at, queue, jid, r, t.throttles) end
  if t.tags[1] then tag.set(at, jid, r, t.tags) end
  local wish = t.options
  if not next(wish) then return end
  local expires = wish.expires and when + wish.expires - at.now
  local own = { backoff = wish.backoff, limit = wish.limit, keep = wish.keep, expires = expires }
  options.set(at, jid, r, own, wish.losses)
end

-- Puts one job for the occurrence at `when`; `sequence` is a number that was taken.
local function put(at, queue, template, jid, t, when, sequence)
  local r = {
    state = state.DEPENDS, flags = at.events.flags and at.events.flags(at, jid) or 0, priority = t.priority,
    attempts = 0, retries = t.retries, remaining = t.retries, losses = 0, created = when, queued = when,
    queue = queue.name, klass = t.klass, token = 0, popped = 0, ended = 0, worker = "", body = "",
  }
  if t.options.losses then r.flags = r.flags + record.FLAG.BUDGETED end
  at.record.begin(r, when)
  job.set_body(at, jid, r, t.data)
  extra.set(at, jid, r, "s", template)
  dress(at, queue, jid, r, t, when)
  state.move(r, state.WAITING)
  call("ZADD", queue.waiting, at.order.place(r, sequence, when, jid))
  job.write(at, jid, r)
end

-- How many jobs of this template may still be put in this call, and what each weighs.
local function allowed(t, budget)
  local weight = 1 + #t.tags + floor(#t.data / HEAVY)
  local most = floor(budget.weight / weight)
  if most < 1 and budget.fresh then most = 1 end
  return most < budget.jobs and most or budget.jobs, weight
end

-- Puts the jobs of one template that is due. Says whether there is room for another.
local function from_template(at, queue, jid, budget)
  local t = recurrence.read(at, jid)
  if not t then
    call("ZREM", queue.recurring, jid) -- an orphan: its template is gone
    return true
  end
  local when = first_of(at, t, tonumber(call("ZSCORE", queue.recurring, jid)))
  local most, weight = allowed(t, budget)
  local first, idle = queues.enter(at, queue, 0, at.bounds.hidden)
  local done = 0
  while when <= at.now and done < most do
    local name = next_name(at, jid, t)
    if not name then break end
    done = done + 1
    put(at, queue, jid, name, t, when, first + done)
    when = when + t.interval
  end
  if done > 0 then queues.enter(at, queue, done, at.bounds.hidden) end
  recurrence.write_count(at, jid, t)
  call("ZADD", queue.recurring, when / at.bounds.unit, jid)
  if done > 0 and idle then queues.signal(queue) end
  budget.jobs, budget.weight, budget.fresh = budget.jobs - done, budget.weight - done * weight, false
  return budget.jobs > 0 and when > at.now
end

-- Puts up to `count` jobs for the templates of a queue that are due, by their time. Returns
-- how many.
function M.run(at, queue, count)
  local budget = { jobs = count, weight = at.bounds.weight, fresh = true }
  while budget.jobs >= 1 do
    local due = recurrence.due(at, queue, budget.jobs < PIECE and floor(budget.jobs) or PIECE)
    for i = 1, #due do
      if not from_template(at, queue, due[i], budget) then return count - budget.jobs end
    end
    if #due < PIECE then break end
  end
  return count - budget.jobs
end

return M
