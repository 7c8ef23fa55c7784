-- put_one: one job comes into a queue, by itself.
local keys = require("base.keys")
local record = require("base.record")
local refuse = require("base.refuse")
local queue_bounds = require("nouns.queue.queue_bounds")
local cycle = require("nouns.dependency.dependency_cycle")
local dependency = require("nouns.dependency.dependency")
local dependents = require("nouns.dependency.dependents")
local handover = require("nouns.dependency.handover")
local ending = require("nouns.job.ending")
local extra = require("nouns.job.extra")
local history = require("nouns.job.history")
local failure = require("nouns.failure.failure")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local options = require("nouns.job.options")
local placement = require("nouns.job.placement")
local queues = require("nouns.queue.queue")
local result = require("nouns.job.result")
local report = require("nouns.lease.report")
local state = require("nouns.job.state")
local tag = require("nouns.job.tag")
local unique = require("nouns.job.unique")
local links = require("nouns.dependency.dependency_links")
local M = {}

local NOTHING = {}
local OPEN = { [state.WAITING] = true, [state.SCHEDULED] = true, [state.DEPENDS] = true, [state.THROTTLED] = true }
local HAS_ENDED = { [state.COMPLETE] = true, [state.FAILED] = true }
local TAGGED, BUDGETED = record.FLAG.TAGGED, record.FLAG.BUDGETED
local RETRIES = 5 -- where none are given
M.MOVES = { move = true, old = true } -- modes in which a job that exists begins a new life
local MOVES = M.MOVES

-- How many losses a job may have that brings its own retries, false for those that pay with a
-- retry; nil: unchanged.
local function losses_of(target)
  if target.losses or not target.retries then return target.losses end
  return false
end

-- A job waits for one that existed before, by an edge. One that is complete, or gone but for its result, has ended
-- already; of one that failed, the job learns as if it failed now: `r.doomed` is why it has to fail.
local function wait_for(ctx, jid, r, edge)
  local p = job.read(ctx, edge.parent)
  local noted = p and p.state == state.FAILED and failure.read(ctx, edge.parent, p)
  local ended = noted and { group = noted[failure.GROUP], message = noted[failure.MESSAGE] }
  if edge.from >= 0 then extra.set(ctx, jid, r, dependency.PLACES, "1") end
  if not p or p.state == state.COMPLETE then
    handover.keep(ctx, jid, edge, { result = result.read(ctx, edge.parent) or nil })
  elseif ended and edge.policy == dependency.RUN then
    handover.keep(ctx, jid, edge, ended)
  else
    links.join_by(ctx, jid, r, edge)
    if ended and edge.policy == dependency.FAIL then r.doomed = handover.reason(edge.parent, ended) end
  end
end

local function wait_by_edges(ctx, jid, r, edges)
  local own = {}
  for _, edge in ipairs(edges) do
    if edge.is_own then own[#own + 1] = edge else wait_for(ctx, jid, r, edge) end
  end
  if own[1] then links.add_edges(ctx, jid, r, own) end
  if not dependency.is_open(r) then handover.put_in(ctx, jid, r) end
end

-- Gives the job its options. `opts` (nil: none) has tags (nil: none if this is a put; the present
-- ones, added again, if `target.alone`), throttles (nil: none), depends (nil or empty: unchanged), and
-- what `options` keeps; `edges` (nil: none) are parents with policies: see `dependency`; `is_parent`: jobs that come
-- with it wait for it; `group`: it stands for a large group.
local function apply_options(ctx, target, jid, r, opts)
  if opts then r.fields = {} end
  if ctx.throttles.assign then ctx.throttles.assign(ctx, target.queue, jid, r, opts and opts.throttles) end
  if opts or target.losses or record.has(r.flags, record.FLAG.OPTIONS) then
    options.set(ctx, jid, r, opts or NOTHING, losses_of(target))
  end
  local tags = opts and opts.tags
  if not tags and record.has(r.flags, TAGGED) then
    tags = target.alone and tag.of(ctx, jid, r) or target.is_put and NOTHING
  end
  if tags then tag.set(ctx, jid, r, tags) end
  if not opts then return end
  extra.flush(ctx, jid, r)
  if opts.depends and opts.depends[1] then links.replace(ctx, jid, r, opts.depends) end
  if opts.edges then wait_by_edges(ctx, jid, r, opts.edges) end
  if opts.group then r.flags = record.with(r.flags, record.FLAG.DEPENDING) end
end

-- A job that is new, or begins a new life, goes where it belongs. Writes the record.
local function settle_in(ctx, target, jid, r)
  placement.settle(ctx, target, jid, r)
  if r.doomed then target.doomed[#target.doomed + 1] = { jid = jid, why = r.doomed } end
  if ctx.events.tracked then ctx.events.tracked(ctx, "put", jid, r) end
end

-- Announces a put, where there are such messages. Returns the flags of a fresh job.
local function announce(ctx, target, jid)
  if ctx.events.put then ctx.events.put(ctx, jid, target.queue.name) end
  return ctx.events.flags(ctx, jid)
end

-- A fresh job of its own: a long body, a full queue, or a batch with a known jid.
local function put_fresh(ctx, target, jid, klass, body, opts)
  local retries = target.retries or RETRIES
  local r = {
    state = state.WAITING, flags = announce(ctx, target, jid), priority = target.priority or 0, attempts = 0,
    retries = retries, remaining = retries, losses = 0, created = ctx.now, queued = ctx.now,
    queue = target.queue.name, klass = klass, token = 0, popped = 0, ended = 0, worker = "", body = "",
    since = 0, place = false,
  }
  if target.losses then r.flags = r.flags + BUDGETED end
  if target.counts then r.flags = r.flags + record.FLAG.FLOW end
  ctx.record.begin(r, ctx.now)
  job.set_body(ctx, jid, r, body)
  apply_options(ctx, target, jid, r, opts)
  if opts and opts.is_parent then r.flags = record.with(r.flags, record.FLAG.DEPENDENTS) end
  settle_in(ctx, target, jid, r)
end

-- A job that exists is moved here: a new life under the same jid.
local function put_again(ctx, target, jid, klass, body, r, opts)
  announce(ctx, target, jid)
  if r.state == state.RUNNING and r.worker ~= target.by then ctx.events.lock_lost(ctx, jid, r.worker) end
  lease.evict(ctx, jid, r)
  history.add(ctx, jid, r, history.PUT, target.queue.name)
  if ctx.budgets and target.retries then
    r.flags = (target.losses and record.with or record.without)(r.flags, BUDGETED)
  end
  apply_options(ctx, target, jid, r, opts)
  r.queue, r.klass = target.queue.name, klass
  r.priority, r.retries = target.priority or r.priority, target.retries or r.retries
  r.remaining, r.queued, r.losses = r.retries, ctx.now, 0
  ctx.record.begin(r, ctx.now)
  report.clear(ctx, jid, r)
  job.set_body(ctx, jid, r, body)
  settle_in(ctx, target, jid, r)
end

-- A put meets a job that holds its key and has not started: that one gets all that this one would have, but for its
-- jid, its queue and when it was created. Its delay begins again, and ends `debounce_max` ms after that moment at most.
local function replace(ctx, target, holder, r, klass, body, opts)
  local refused = opts.depends and cycle.refusal(ctx, target, holder, r, opts.depends)
  if refused then return refused end
  local place, delay = keys.of_queue(ctx, r.queue), target.delay
  local left = opts.debounce_max and r.created + opts.debounce_max - ctx.now or delay
  if left < delay then delay = left > 0 and left or 0 end
  local own = {
    queue = place, priority = target.priority, retries = target.retries, delay = delay, losses = target.losses,
    limited = nil, is_put = true, first = nil, idle = nil, room = nil, alone = true, by = target.by,
  }
  put_again(ctx, own, holder, klass, body, r, opts)
  unique.take(ctx, unique.of(klass, opts.unique_key), opts.unique_for or unique.END, holder)
  return "replaced " .. holder
end

-- A put meets a job that holds its key and has started: the new one begins after that has ended, if it has not.
local function follow(ctx, target, jid, opts, holder, r)
  if r.state == state.COMPLETE or r.state == state.FAILED then return nil end
  local refused = cycle.refusal(ctx, target, jid, job.read(ctx, jid), { holder })
  if refused then return refused end
  opts.edges = { { parent = holder, policy = dependency.RUN, from = -1, length = 0 } }
end

-- What becomes of a put whose key another job holds; nil: it may be put, and cancels the job that is returned behind,
-- with its record.
local function meet(ctx, target, jid, klass, body, opts)
  local holder, r = unique.standing(ctx, unique.of(klass, opts.unique_key), jid)
  if not holder then return nil end
  if opts.only_own and r.queue ~= target.queue.name then return refuse.job("NOT_UNIQUE", "a job of another queue") end
  local how = opts.on_conflict or "keep"
  if how == "keep" then return "kept " .. holder end
  if how == "raise" then return refuse.job("NOT_UNIQUE", holder) end
  if how == "replace" then
    local is_open = r.attempts == 0 and OPEN[r.state]
    if is_open then return replace(ctx, target, holder, r, klass, body, opts) end
    return follow(ctx, target, jid, opts, holder, r)
  end
  if r.state == state.COMPLETE or r.state == state.FAILED then return nil end -- it had the key for a time
  if dependency.is_needed(ctx, holder, r) then
    return refuse.job("DEPENDENCY_REFUSED", holder .. " is a dependency of another job, and is not cancelled")
  end
  return nil, holder, r
end

-- A job takes its key. Its caller may put it again, unless its jid was minted.
local function take_key(ctx, mode, jid, klass, opts)
  local take = mode == "new" and unique.take or unique.take_again
  take(ctx, unique.of(klass, opts.unique_key), opts.unique_for or unique.END, jid)
end

-- The queue becomes known with its first job. With `target.alone` a job that is new and surely
-- ready takes its sequence number in the same step.
local function enter(ctx, target, r, opts)
  local now = target.alone and not r and target.delay <= 0 and not (opts and (opts.depends or opts.edges))
  target.first, target.idle, target.limited = queues.enter(ctx, target.queue, now and 1 or 0)
  if not now then target.first = nil end
end

-- One job on its own; for `target` see `put`. Returns a code, or nil if it was added or moved, then
-- whether it was moved.
function M.run(ctx, target, mode, jid, klass, body, opts)
  local r = job.read(ctx, jid)
  if not r and mode == "old" then return refuse.job("JOB_NOT_FOUND", jid) end
  local wanted = not r or MOVES[mode]
  local refused = wanted and opts and opts.depends and cycle.refusal(ctx, target, jid, r, opts.depends)
  if refused then return refused end
  local is_unique, holder, held = wanted and opts and opts.unique_key, nil, nil
  if is_unique then
    refused, holder, held = meet(ctx, target, jid, klass, body, opts)
    if refused then return refused end
  end
  -- After all that may be refused, but for a queue that holds as many jobs as it may.
  if wanted and target.limited == nil then enter(ctx, target, r, opts) end
  refused = wanted and target.is_put and target.limited and queue_bounds.refusal(target, jid, r)
  if refused and target.first then queues.return_sequence(target.queue, 1) end
  if refused then return refused end
  if r and MOVES[mode] and HAS_ENDED[r.state] and not (opts and opts.depends and opts.depends[1]) then
    local found, problem = dependents.look_again(ctx, jid, r)
    if problem then return refuse.job("WRONG_STATE", problem) end
    r = found
  end
  if holder then
    ending.cancel(ctx, holder, held, {}, "")
    r = r and job.read(ctx, jid) -- a slot that came back may have made it ready
  end
  if wanted and r and ctx.keys.unique then unique.leave(ctx, jid) end
  if is_unique then take_key(ctx, mode, jid, klass, opts) end
  if not r then return put_fresh(ctx, target, jid, klass, body, opts) end
  if MOVES[mode] then
    put_again(ctx, target, jid, klass, body, r, opts)
    return nil, true
  end
  if mode == "only" and (r.klass ~= klass or job.body(ctx, jid, r) ~= body) then
    return refuse.job("JOB_EXISTS", jid)
  end
  return "again"
end

return M
