-- native: the functions that our own clients call.
--
-- One function a verb; the name carries the protocol's version. Arguments come as
-- words; this file turns the numeric ones into numbers, checks the limits that
-- hold for every caller, and opens the root. It decides nothing else.
local late = require("base.late")
local batch = require("base.batch")
local keys = require("base.keys")
local order = require("base.order")
local record = require("base.record")
local refuse = require("base.refuse")
local root = require("base.root")
local numbered = require("doors.numbered")
local advance = require("verbs.advance")
local await = require("verbs.await")
local cancel = require("verbs.cancel")
local configure = require("verbs.configure")
local counts = require("verbs.counts")
local expire = require("verbs.expire")
local fail = require("verbs.fail")
local heartbeat = require("verbs.heartbeat")
local info = require("verbs.info")
local inspect = require("verbs.inspect")
local move = require("verbs.move")
local pause = require("verbs.pause")
local put = require("verbs.put")
local reprioritise = require("verbs.reprioritise")
local retry = require("verbs.retry")
local stats = require("verbs.stats")
local timeout = require("verbs.timeout")

-- How much one native call may move, release, examine.
local BOUNDS = { due = 100, lost = 100, released = 100, slack = 64, reply = 8388608 }
local LONGEST_NAME, MOST_RETRIES, HIGHEST = 200, 1000, 4095
local MODES = { new = true, move = true, only = true }
local NONE, DRAINS, READS = {}, { "allow-oom" }, { "no-writes" }

local function bad(what) refuse.call("BAD_ARGUMENT", what) end

local function number(args, i, what, least, most)
  local value = tonumber(args[i])
  if not value or value ~= value or value < least or value > most or value % 1 ~= 0 then
    bad(what .. " is not a whole number from " .. least .. " to " .. ("%.0f"):format(most))
  end
  return value
end

local BIG = 9007199254740991
local function time(args, i, what) return number(args, i, what, 0, BIG) end

local function name(args, i, what)
  local text = args[i]
  if not text or #text == 0 or #text > LONGEST_NAME or text:find("%c") then
    bad(what .. " is not a name of 1 to 200 bytes without control characters")
  end
  return text
end

-- Checks that args[first ...] are groups of `width`, at most 512. Returns the last index.
local function groups(args, first, width)
  local count = (#args - first + 1) / width
  if count % 1 ~= 0 or count < 0 then bad("a group of " .. width .. " arguments is not whole") end
  if count > batch.LIMIT then refuse.call("TOO_MANY", "at most " .. batch.LIMIT .. " in one call") end
  return #args
end

local function names(args, first, what)
  local last = groups(args, first, 1)
  for i = first, last do name(args, i, what) end
  return last
end

local function open(key)
  return root.open({
    keys = keys.of_root(key), order = order.native, record = record.native, bounds = BOUNDS,
  }, key)
end

local VERBS = {
  { "put", NONE, "line number mode queue priority retries delay (jid klass data)...", function(at, args)
    local line, count, mode, queue = args[1], time(args, 2, "number"), args[3], name(args, 4, "queue")
    if not MODES[mode] then bad("mode is new, move or only") end
    local priority = number(args, 5, "priority", -HIGHEST, HIGHEST)
    local retries, delay = number(args, 6, "retries", 0, MOST_RETRIES), time(args, 7, "delay")
    local last = groups(args, 8, 3)
    if last < 8 then return { 0 } end
    for i = 8, last, 3 do
      name(args, i, "jid")
      name(args, i + 1, "klass")
    end
    return numbered.once(at, line, count, function()
      return put.run(at, mode, queue, priority, retries, delay, args, 8, last)
    end)
  end },
  { "pop", DRAINS, "worker line number n lease (queue mode)...", function(at, args)
    local give = { worker = name(args, 1, "worker"), lease = time(args, 5, "lease"), out = { -1 } }
    local want = number(args, 4, "n", 0, batch.LIMIT)
    return numbered.pop(at, give, args[2], time(args, 3, "number"), want, args, 6, groups(args, 6, 2))
  end },
  { "complete", DRAINS, "worker (jid token data keep result)...", function(at, args)
    return numbered.complete(at, name(args, 1, "worker"), args, 2, groups(args, 2, 5))
  end },
  { "complete_pop", DRAINS, "worker line number n lease queues (queue mode)... (jid token data keep result)...",
    function(at, args)
      local give = { worker = name(args, 1, "worker"), lease = time(args, 5, "lease") }
      local want = number(args, 4, "n", 0, batch.LIMIT)
      local first = 7 + 2 * number(args, 6, "queues", 0, batch.LIMIT)
      return numbered.complete_pop(at, give, args[2], time(args, 3, "number"), want, args, first, groups(args, first, 5))
    end },
  { "advance", DRAINS, "worker next_queue delay (jid token data)...", function(at, args)
    return advance.run(at, name(args, 1, "worker"), name(args, 2, "next queue"), time(args, 3, "delay"), args, 4,
      groups(args, 4, 3))
  end },
  { "heartbeat", DRAINS, "lease (worker jid token data)...", function(at, args)
    return heartbeat.run(at, time(args, 1, "lease"), args, 2, groups(args, 2, 4))
  end },
  { "retry", DRAINS, "worker delay group message (jid token data)...", function(at, args)
    return retry.run(at, name(args, 1, "worker"), time(args, 2, "delay"), args[3], args[4], args, 5, groups(args, 5, 3))
  end },
  { "fail", DRAINS, "worker group message (jid token data)...", function(at, args)
    return fail.run(at, name(args, 1, "worker"), name(args, 2, "group"), args[3], args, 4, groups(args, 4, 3))
  end },
  { "expire", DRAINS, "(worker jid token)...", function(at, args)
    return expire.run(at, args, 1, groups(args, 1, 3))
  end },
  { "cancel", DRAINS, "line number jid...", function(at, args)
    local last = names(args, 3, "jid")
    return numbered.once(at, args[1], time(args, 2, "number"), function() return cancel.run(at, args, 3, last) end)
  end },
  { "move", NONE, "line number queue delay jid data priority", function(at, args)
    local queue, delay, jid = name(args, 3, "queue"), time(args, 4, "delay"), name(args, 5, "jid")
    if args[7] ~= "" then number(args, 7, "priority", -HIGHEST, HIGHEST) end
    return numbered.once(at, args[1], time(args, 2, "number"), function()
      return move.run(at, queue, delay, jid, args[6], args[7])
    end)
  end },
  { "priority", NONE, "priority jid...", function(at, args)
    return reprioritise.run(at, number(args, 1, "priority", -HIGHEST, HIGHEST), args, 2, names(args, 2, "jid"))
  end },
  { "timeout", DRAINS, "jid...", function(at, args) return timeout.run(at, args, 1, names(args, 1, "jid")) end },
  { "await", DRAINS, "jid...", function(at, args) return await.run(at, args, 1, names(args, 1, "jid")) end },
  { "counts", READS, "queue...", function(at, args) return counts.run(at, args, 1, names(args, 1, "queue")) end },
  { "queues", READS, "", function(at) return counts.queues(at) end },
  { "peek", READS, "queue offset count", function(at, args)
    local queue = keys.of_queue(at, name(args, 1, "queue"))
    return inspect.peek(at, queue, time(args, 2, "offset"), number(args, 3, "count", 0, batch.LIMIT))
  end },
  { "job_get", READS, "jid...", function(at, args) return inspect.jobs(at, args, 1, names(args, 1, "jid")) end },
  { "jobs_complete", READS, "offset count", function(at, args)
    return inspect.completed(at, time(args, 1, "offset"), time(args, 2, "count"))
  end },
  { "failures", READS, "", function(at) return inspect.failures(at) end },
  { "failed", READS, "group offset count", function(at, args)
    return inspect.failed(at, name(args, 1, "group"), time(args, 2, "offset"), time(args, 3, "count"))
  end },
  { "stats", READS, "queue day", function(at, args)
    return stats.run(at, name(args, 1, "queue"), time(args, 2, "day"))
  end },
  { "pause", DRAINS, "on who why queue...", function(at, args)
    return pause.run(at, number(args, 1, "on", 0, 1) == 1, args[2], args[3], args, 4, names(args, 4, "queue"))
  end },
  { "config_get", READS, "key...", function(at, args) return configure.get(at, args, 1, names(args, 1, "key")) end },
  { "config_set", NONE, "key value", function(at, args) return configure.set(at, name(args, 1, "key"), args[2]) end },
  { "config_unset", NONE, "key", function(at, args) return configure.unset(at, name(args, 1, "key")) end },
  { "throttle_set", NONE, "id maximum", function(at, args)
    return configure.throttle(at, name(args, 1, "id"), number(args, 2, "maximum", 0, 4294967295))
  end },
  { "throttle_get", READS, "id", function(at, args) return configure.throttle_state(at, name(args, 1, "id")) end },
  { "sweep", DRAINS, "", function(at) return configure.sweep(at) end },
}

local function describe()
  local rows = {}
  for i = 1, #VERBS do rows[i] = { VERBS[i][1], VERBS[i][2][1] or "", VERBS[i][3] } end
  return rows
end

local function register(verb, flags, run)
  redis.register_function({ function_name = "hf1_" .. verb, callback = run, flags = flags })
end

for i = 1, #VERBS do
  local run = VERBS[i][4]
  register(VERBS[i][1], VERBS[i][2], function(declared, args)
    late.ready()
    return run(open(declared[1]), args)
  end)
end

register("info", DRAINS, function(declared, args)
  late.ready()
  return info.run(declared[1], args[1], time(args, 2, "clock"), HOLDFAST_CORE)
end)
register("clock", NONE, function(declared, args)
  late.ready()
  root.set_clock(declared[1], time(args, 1, "now"))
  return args[1]
end)
register("describe", READS, function()
  late.ready()
  return describe()
end)
