-- put: jobs come into a queue, on the cheapest of three ways that fits:
--
-- * straight, in this file: short jobs without options, into a queue without limits, take one
--   command for all records and one for all places;
-- * together, in `put_new`: jobs that are all new are made up in memory, then written with one
--   command for each set that they come into;
-- * one by one, in `put_each` and `put_one`: all others, such as jobs that exist already.
--
-- Modes: `new` (the jid was minted by the caller: a job that exists is this very
-- put, sent again), `move` (a job that exists is moved here and starts a new life),
-- `only` (a job that exists is left alone: `again` if klass and data are the same),
-- `old` (as `move`, but there must be such a job).
--
-- `target` is where jobs go and how: queue, delay (ms), priority, retries and losses (nil: as
-- before), is_put (the queue's bounds and no earlier tags count), alone (no other job comes with
-- it), by (a worker that needs no message if it loses the job); and is filled in on the way:
-- limited (the queue's bit; nil: not asked yet), first and idle (of a sequence number that is
-- taken), room (how many more jobs may wait), left (what may be looked at for cycles).
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local event = require("nouns.event.event")
local options = require("nouns.job.options")
local queues = require("nouns.queue.queue")
local state = require("nouns.job.state")
local tally = require("nouns.queue.tally")
local unique = require("nouns.job.unique")
local put_each = require("verbs.put_each")
local put_new = require("verbs.put_new")
local M = {}

local SPILL, BUDGETED = record.SPILL, record.FLAG.BUDGETED

-- Fresh records find no place: they go, so that a repeat of the put does not get `again`.
local function undo(problem, ...)
  call("UNLINK", ...)
  error(problem)
end

local function jobs_of(args, first, last)
  local jobs = {}
  for i = first, last, 3 do jobs[#jobs + 1] = { jid = args[i], klass = args[i + 1], data = args[i + 2] } end
  return jobs
end

-- The straight way for one short job. Nil if its jid is known.
local function add_single(ctx, queue, head, priority, position, jid, klass, body)
  if call("SETNX", ctx.keys.job .. jid, ctx.record.with_klass(head, klass) .. body) == 0 then return nil end
  local placed = try("ZADD", queue.waiting, ctx.order.entry(position, priority, ctx.now, jid))
  if type(placed) == "table" then undo(placed, ctx.keys.job .. jid) end
  return { 1 }
end

-- Argument lists that every call fills again from the front.
local sets, entries, names = {}, {}, {}

-- A jid came twice in a batch: writes the first ones once more, names the others.
local function add_first(ctx, queue, args, first, last, width)
  local reply, seen = { 0 }, {}
  for i = first, last, width do
    local jid, n = args[i], 2 * (i - first) / width
    if seen[jid] then
      reply[#reply + 1], reply[#reply + 2] = n / 2, "again"
    else
      seen[jid], reply[1] = true, reply[1] + 1
      call("SET", sets[n + 1], sets[n + 2])
      call("ZADD", queue.waiting, entries[n + 1], entries[n + 2])
    end
  end
  tally.count(ctx, queue, "again", (last - first + 1) / width - reply[1])
  return reply
end

-- The straight way for many short jobs. Nil if any jid is known, or one body is long.
local function add_many(ctx, queue, head, priority, position, args, first, last, width)
  local prefix, with_klass, entry, now, n = ctx.keys.job, ctx.record.with_klass, ctx.order.entry, ctx.now, 0
  local klass, start
  for i = first, last, width do
    local jid, body = args[i], args[i + 2]
    if #body > SPILL then return nil end
    if args[i + 1] ~= klass then
      klass = args[i + 1]
      start = with_klass(head, klass)
    end
    sets[n + 1], sets[n + 2] = prefix .. jid, start .. body
    position = position + 1
    entries[n + 1], entries[n + 2] = entry(position, priority, now, jid)
    n = n + 2
  end
  if call("MSETNX", unpack_(sets, 1, n)) == 0 then return nil end
  local placed = try("ZADD", queue.waiting, unpack_(entries, 1, n))
  if placed == n / 2 then return { n / 2 } end
  if type(placed) == "table" then
    for i = 1, n, 2 do names[(i + 1) / 2] = sets[i] end
    undo(placed, unpack_(names, 1, n / 2))
  end
  return add_first(ctx, queue, args, first, last, width)
end

local function new_target(queue, priority, retries, delay, losses, limited)
  return {
    queue = queue, priority = priority, retries = retries, delay = delay, losses = losses, limited = limited,
    is_put = true, first = nil, idle = nil, room = nil,
  }
end

-- Puts jobs that cannot go straight; `may_be_new` is false where some were found to exist.
local function add(ctx, target, mode, jobs, may_be_new)
  if may_be_new and mode ~= "old" then
    local added = put_new.run(ctx, target, jobs)
    if added then return added end
    target.limited, target.first = nil, nil
  end
  return put_each.run(ctx, target, mode, jobs)
end

-- `args[first … last]` are (jid, klass, data); `losses` is how many each may have (nil: their
-- retries pay). Returns how many were added or moved, then (index from 0, code): why not, or `again`
-- for a job that was there (of mode `move` and `old` it was moved).
function M.run(ctx, mode, name, priority, retries, delay, args, first, last, losses)
  local queue, limited = keys.of_queue(ctx, name), nil
  if mode ~= "only" and mode ~= "old" then -- those may be refused, so they look before they take a number
    local count = (last - first + 1) / 3
    local straight = delay <= 0 and (mode == "new" or count == 1 and not root.has(ctx, root.MARKED))
      and (count > 1 or #args[first + 2] <= SPILL) and (not losses or losses == options.LOSSES)
    local position, idle, has_limit = queues.enter(ctx, queue, straight and count or 0)
    limited = has_limit
    if straight and not limited then
      local added
      local head = ctx.record.fresh(state.WAITING, losses and BUDGETED or 0, priority, retries, ctx.now, name)
      if count > 1 then
        added = add_many(ctx, queue, head, priority, position, args, first, last, 3)
      else
        added = add_single(ctx, queue, head, priority, position + 1, args[first], args[first + 1], args[first + 2])
      end
      if added and idle then queues.signal(queue) end
      if added then
        if ctx.watched then event.changed(ctx, "queue:" .. name) end
        return added
      end
    end
    if straight then queues.return_sequence(queue, count) end -- each takes its own, or is refused
  end
  local target = new_target(queue, priority, retries, delay, losses, limited)
  return add(ctx, target, mode, jobs_of(args, first, last), limited or delay > 0 or losses)
end

-- The straight way for short jobs that have unique keys and no other option: each is `width` words in args[first …],
-- the sixth of them its key. Nil if a jid is known, or a key held.
function M.run_keyed(ctx, name, priority, retries, losses, args, first, width, hold)
  local queue, last = keys.of_queue(ctx, name), #args
  local count = (last - first + 1) / width
  if losses and losses ~= options.LOSSES or count == 1 and #args[first + 2] > SPILL then return nil end
  local position, idle, limited = queues.enter(ctx, queue, count)
  if not limited and unique.take_free(ctx, args, first, last, width, hold) then
    local head = ctx.record.fresh(state.WAITING, losses and BUDGETED or 0, priority, retries, ctx.now, name)
    local added
    if count == 1 then
      added = add_single(ctx, queue, head, priority, position + 1, args[first], args[first + 1], args[first + 2])
    else
      added = add_many(ctx, queue, head, priority, position, args, first, last, width)
    end
    if added and idle then queues.signal(queue) end
    if added and ctx.watched then event.changed(ctx, "queue:" .. name) end
    if added then return added end
    unique.give_back(ctx, args, first, last, width)
  end
  queues.return_sequence(queue, count)
end

-- The same for jobs with options: tables of jid, klass, data and opts; `jobs.depend`: some of
-- them wait for others.
function M.run_x(ctx, mode, name, priority, retries, delay, jobs, losses)
  return add(ctx, new_target(keys.of_queue(ctx, name), priority, retries, delay, losses, nil), mode, jobs, true)
end

return M
