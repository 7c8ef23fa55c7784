-- native_work: the native door's rows for the life of a job.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local bounds = require("base.bounds")
local checks = require("doors.checks")
local requests = require("doors.requests")
local put_options = require("doors.put_options")
local grants = require("nouns.lease.grant")
local advance = require("verbs.advance")
local await = require("verbs.await")
local cancel = require("verbs.cancel")
local fail = require("verbs.fail")
local find_work = require("verbs.find_work")
local heartbeat = require("verbs.heartbeat")
local move = require("verbs.move")
local put = require("verbs.put")
local release = require("verbs.release")
local reprioritise = require("verbs.reprioritise")
local resume = require("verbs.resume")
local retry = require("verbs.retry")
local timeout = require("verbs.timeout")

local MOST, HIGHEST = bounds.BATCH, bounds.PRIORITY
local MOST_QUEUES, MOST_NAMES = 1000000000, 1000 -- that there may be; that are named in one call
local MOST_HEAVY = 128 -- jobs that get a line of history each
local MODES = { new = true, move = true, only = true, old = true }
local MOVED = { tags = true, throttles = true, depends = true }
local OWN = "-1" -- as delay of a retry: by the backoff of the job
local ADDS, DRAINS = {}, { "allow-oom" }
local bad, groups, name, names, number = checks.bad, checks.groups, checks.name, checks.names, checks.number
local lease, optional, span, text, time = checks.lease, checks.optional, checks.span, checks.text, checks.time
local with_bodies, word = checks.with_bodies, checks.word

-- Who gets jobs, for how long, and where the rows go.
local function new_grant(args, out) return grants.new(word(args, 1, "worker"), lease(args, 5), out, nil) end

-- The delay of a retry in ms; a backoff, as in the options of a put, for a job that has none; nil: by that of the job.
local function pause(args, i)
  if args[i] == OWN then return nil end
  if args[i] and find(args[i], "^%a+:") then return put_options.backoff(args[i]) end
  return span(args, i, "delay")
end

-- What the two puts begin with: line, number, mode, queue, priority, retries, delay, losses.
local function put_head(args)
  if not MODES[args[3]] then checks.expected("mode", "new, move, only or old", args[3]) end
  return optional(args, 1, "line"), time(args, 2, "number"), args[3], checks.placing(args, 4)
end

-- What a move changes: data, priority, klass and retries in args[6 … 9], "" for nothing, then
-- options. Clients of an earlier release end after the priority.
local function move_changes(args)
  local count = args[10] and number(args, 10, "options", 0, MOST) or 0
  local change = { data = args[6], priority = args[7], klass = args[8] or "", retries = args[9] or "", opts = nil }
  checks.data(args, 6)
  if change.priority ~= "" then number(args, 7, "priority", -HIGHEST, HIGHEST) end
  if change.klass ~= "" then word(args, 8, "klass") end
  if change.retries ~= "" then number(args, 9, "retries", 0, bounds.RETRIES) end
  local opts = args[10] and put_options.one(args, 11, count)
  for option in pairs(opts or {}) do
    if not MOVED[option] then bad("a move takes tags, throttles and dependencies, not " .. option) end
  end
  if count > 0 then change.opts = opts end
  return change
end

return {
  { "put", ADDS, "line number mode queue priority retries delay (jid klass data)...", function(ctx, args)
    local line, count, mode, queue, priority, retries, delay, losses = put_head(args)
    local last = groups(args, 8, 3)
    if last < 8 then return { 0 } end
    for i = 8, last, 3 do
      name(args, i, "jid")
      word(args, i + 1, "klass")
      checks.data(args, i + 2)
    end
    if line == "" then return put.run(ctx, mode, queue, priority, retries, delay, args, 8, last, losses) end
    return requests.once(ctx, line, count, function()
      return put.run(ctx, mode, queue, priority, retries, delay, args, 8, last, losses)
    end)
  end },
  { "put_x", ADDS, "line number mode queue priority retries delay (jid klass data options (option value)...)...",
    function(ctx, args)
      local line, count, mode, queue, priority, retries, delay, losses = put_head(args)
      local width, hold
      if mode == "new" and delay <= 0 then width, hold = put_options.keyed(args, 8) end
      local jobs = not width and put_options.jobs(args, 8)
      return requests.once(ctx, line, count, function()
        local added = width and put.run_keyed(ctx, queue, priority, retries, losses, args, 8, width, hold)
        if added then return added end
        return put.run_x(ctx, mode, queue, priority, retries, delay, jobs or put_options.jobs(args, 8), losses)
      end)
    end },
  { "pop", DRAINS, "worker line number n lease (queue mode)...", function(ctx, args)
    local grant = new_grant(args, { -1, nil, nil, nil, nil }) -- with room for one row
    local want, last = number(args, 4, "n", 0, MOST), checks.queues(args, 6, groups(args, 6, 2))
    return requests.pop(ctx, grant, optional(args, 2, "line"), time(args, 3, "number"), want, args, 6, last)
  end },
  { "find_work", DRAINS, "fleet mode first count", function(ctx, args)
    local fleet, mode = name(args, 1, "fleet"), number(args, 2, "mode", 0, 2)
    local first = number(args, 3, "first", 0, MOST_QUEUES)
    return find_work.run(ctx, fleet, mode, first, number(args, 4, "count", 1, MOST_NAMES))
  end },
  { "complete", DRAINS, "worker (jid token data keep result)...", function(ctx, args)
    return requests.complete(ctx, word(args, 1, "worker"), args, 2, checks.done(args, 2))
  end },
  { "complete_pop", DRAINS, "worker line number n lease queues (queue mode)... (jid token data keep result)...",
    function(ctx, args)
      local grant = new_grant(args, nil)
      local want = number(args, 4, "n", 0, MOST)
      local first = 7 + 2 * number(args, 6, "queues", 0, MOST)
      local line, count, last = optional(args, 2, "line"), time(args, 3, "number"), checks.done(args, first)
      checks.queues(args, 7, first - 1)
      return requests.complete_pop(ctx, grant, line, count, want, args, first, last)
    end },
  { "advance", DRAINS, "worker next_queue delay (jid token data)...", function(ctx, args)
    return advance.run(ctx, word(args, 1, "worker"), name(args, 2, "next queue"), span(args, 3, "delay"), args, 4,
      with_bodies(args, 4, 3, MOST_HEAVY))
  end },
  { "heartbeat", DRAINS, "lease (worker jid token data)...", function(ctx, args)
    return heartbeat.run(ctx, lease(args, 1), args, 2, with_bodies(args, 2, 4))
  end },
  { "resume", DRAINS, "worker lease (holder jid token)...", function(ctx, args)
    local worker, length, last = word(args, 1, "worker"), lease(args, 2), groups(args, 3, resume.WIDTH, MOST_HEAVY)
    return resume.run(ctx, worker, length, args, 3, last)
  end },
  { "retry", DRAINS, "worker delay group message (jid token data)...", function(ctx, args)
    local worker, group = word(args, 1, "worker"), optional(args, 3, "group")
    return retry.run(ctx, worker, pause(args, 2), group, args[4], args, 5, with_bodies(args, 5, 3, MOST_HEAVY))
  end },
  { "fail", DRAINS, "worker group message (jid token data)...", function(ctx, args)
    return fail.run(ctx, word(args, 1, "worker"), name(args, 2, "group"), args[3], args, 4,
      with_bodies(args, 4, 3, MOST_HEAVY))
  end },
  { "expire", DRAINS, "(worker jid token)...", function(ctx, args)
    return release.run(ctx, release.expire, "", nil, args, 1, groups(args, 1, release.WIDTH, MOST_HEAVY))
  end },
  { "release", DRAINS, "line number how cause group (worker jid token)...", requests.row(function(ctx, args)
    local how, cause = args[3], text(args, 4, "cause", checks.SHORT)
    local release_one = release.HOW[how]
      or checks.expected("how", "preempted, crashed, lost, timed-out or unknown", how)
    local group = (how == "unknown" and name or optional)(args, 5, "group")
    return release.run(ctx, release_one, cause, group, args, 6, groups(args, 6, release.WIDTH, MOST_HEAVY))
  end) },
  { "cancel", DRAINS, "line number jid...", requests.row(function(ctx, args)
    return cancel.run(ctx, args, 3, names(args, 3, "jid"))
  end) },
  { "cancel_by", DRAINS, "line number who jid...", requests.row(function(ctx, args)
    local who = optional(args, 3, "who")
    return cancel.run(ctx, args, 4, names(args, 4, "jid"), nil, who)
  end) },
  { "move", ADDS, "line number queue delay jid data priority klass retries options (option value)...",
    requests.row(function(ctx, args)
      local queue, delay, jid = name(args, 3, "queue"), span(args, 4, "delay"), name(args, 5, "jid")
      return move.run(ctx, queue, delay, jid, move_changes(args))
    end) },
  { "priority", ADDS, "priority jid...", function(ctx, args)
    return reprioritise.run(ctx, number(args, 1, "priority", -HIGHEST, HIGHEST), args, 2, names(args, 2, "jid"))
  end },
  { "timeout", DRAINS, "line number jid...", requests.row(function(ctx, args)
    return timeout.run(ctx, args, 3, names(args, 3, "jid", MOST_HEAVY))
  end) },
  { "await", DRAINS, "jid...", function(ctx, args) return await.run(ctx, args, 1, names(args, 1, "jid")) end },
}
