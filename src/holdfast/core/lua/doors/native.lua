-- native: the functions that our own clients call.
--
-- One function a verb; the name carries the protocol's version. Arguments come as
-- words; the rows turn the numeric ones into numbers and check the limits that
-- hold for every caller. This file opens the root. It decides nothing else.
local keys = require("base.keys")
local root = require("base.root")
local checks = require("doors.checks")
local dialect = require("doors.dialects.native")
local requests = require("doors.requests")
local attached = require("doors.native_jobs")
local console = require("doors.native_console")
local lists = require("doors.native_lists")
local admin = require("doors.native_admin")
local calling = require("doors.native_call")
local dependencies = require("doors.native_dependencies")
local queues = require("doors.native_queues")
local recurring = require("doors.native_recurring")
local audit = require("nouns.operation.audit")
local event = require("nouns.event.event")
local rollback = require("nouns.lease.rollback")
local touched_jobs = require("nouns.job.touched_jobs")
local ending = require("nouns.job.ending")
local throttle = require("nouns.throttle.throttle")
local throttles = require("doors.native_throttles")
local topics = require("doors.native_topics")
local work = require("doors.native_work")
local workers = require("doors.native_workers")
local info = require("verbs.info")

checks.serve(dialect)
local DRAINS, READS, ADDS = { "allow-oom" }, { "no-writes" }, {}

-- A refusal leaves as it is; any other error keeps the place where it happened.
-- The store's own pcall hands over the bare text of a thrown error table.
local function reply_of(ok, reply)
  if ok then return reply end
  local text = type(reply) == "table" and reply.err or reply
  if type(text) == "string" and text:sub(1, 3) == "HF_" then return { err = text } end
  if dialect.keys then pcall(rollback.run, dialect) end
  error(reply)
end

local described, by_verb = {}, {}

local function register(verb, flags, words, run)
  described[#described + 1] = { verb, flags[1] or "", words }
  redis.register_function({
    function_name = "hf1_" .. verb, flags = flags,
    callback = function(declared, args)
      ready()
      return reply_of(pcall(run, declared[1], args))
    end,
  })
end

-- What a changing call does for others: it continues what an earlier one had to leave, and
-- publishes what it changed, if someone watches.
local function afterwards(ctx)
  if root.has(ctx, root.RELEASING) then ending.continue(ctx) end
  if root.has(ctx, root.UPKEEP) then throttle.continue(ctx) end
  if ctx.watched then event.publish_changes(ctx) end
end

local function register_rows(rows)
  for i = 1, #rows do
    local run, changes = rows[i][4], rows[i][2][1] ~= READS[1]
    by_verb[rows[i][1]] = changes and run or nil
    register(rows[i][1], rows[i][2], rows[i][3], function(key, args)
      dialect.keys = keys.of_root(key)
      if touched_jobs.is_used then touched_jobs.begin() end
      local reply = run(root.open(dialect, key), args)
      if changes and dialect.flags > root.TEST then afterwards(dialect) end
      return reply
    end)
  end
end

register_rows(work)
register_rows(queues)
register_rows(lists)
register_rows(admin)
register_rows(dependencies)
register_rows(recurring)
register_rows(workers)
register_rows(attached)
register_rows(throttles)
register_rows(topics)
register_rows(calling)
register_rows(console)

-- Runs a changing verb of an operator with a line of the audit log, both or none. What puts jobs would be let in when
-- the memory is full, and what workers do is not the work of operators: neither is audited.
local UNAUDITED = {
  put = true, put_x = true, flow_put = true, recur = true, topic_put = true, call = true, audited = true, await = true,
  pop = true, find_work = true, complete = true, complete_pop = true, complete_x = true, advance = true, retry = true,
  fail = true, heartbeat = true, resume = true, release = true, expire = true, report = true,
  topic_reserve = true, topic_pull = true, topic_release = true, worker_seen = true, ["worker_answer"] = true,
}
local AT, MOST_KEPT = 7, 131072 -- where the verb is, behind who, what, target and detail; bytes of a kept reply
register_rows({
  { "audited", DRAINS, "line number who what target detail verb argument...", requests.row(function(ctx, args)
    local run = not UNAUDITED[args[AT]] and by_verb[args[AT] or ""] or checks.bad("there is no verb to audit")
    local who, what = checks.name(args, 3, "who"), checks.name(args, 4, "what")
    local target, detail, inner = checks.optional(args, 5, "target"), checks.text(args, 6, "detail", checks.SHORT), {}
    for i = AT + 1, #args do inner[i - AT] = args[i] end
    audit.newest(ctx) -- fails here rather than after the change
    local reply = run(ctx, inner)
    audit.add(ctx, who, what, target, detail)
    return reply
  end, MOST_KEPT) },
})

register("info", DRAINS, "mode clock", function(key, args)
  return info.run(key, args[1], checks.time(args, 2, "clock"), HOLDFAST_CORE)
end)
register("clock", ADDS, "now", function(key, args)
  root.set_clock(key, checks.time(args, 1, "now"))
  return args[1]
end)
register("describe", READS, "", function() return described end)
