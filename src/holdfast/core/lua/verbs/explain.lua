-- explain: all that decides whether a job runs, of one instant. Writes nothing.
--
-- Returns (name, value) pairs; what is not there is left out. Nothing in it grows with the
-- number of jobs: lists show their first entries and how many there are.
local keys = require("base.keys")
local record = require("base.record")
local root = require("base.root")
local budget = require("nouns.lease.budget")
local dependency = require("nouns.dependency.dependency")
local extra = require("nouns.job.extra")
local failure = require("nouns.failure.failure")
local flows = require("nouns.flow.flow")
local members = require("nouns.flow.members")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local options = require("nouns.job.options")
local report = require("nouns.lease.report")
local result = require("nouns.job.result")
local settings = require("nouns.setting.settings")
local state = require("nouns.job.state")
local unknown = require("nouns.failure.unknown")
local unique = require("nouns.job.unique")
local surroundings = require("verbs.surroundings")
local M = {}

local AT = history.AT

local PARENTS, LOOKED_AT, TRIES = 20, 100, 5
local FIELDS = {
  "klass", "queue", "priority", "retries", "remaining", "attempts", "losses", "created", "queued", "popped",
}

local function add(reply, name, value)
  if value ~= nil then reply[#reply + 1], reply[#reply + 2] = name, value end
end

-- Open parents (jid, state, failure group), failed ones first.
local function parents_of(ctx, jid, r)
  local failed, others, all = {}, {}, dependency.parents(ctx, jid, r)
  for i = 1, math.min(#all, LOOKED_AT) do
    local p = job.read(ctx, all[i])
    local noted = p and p.state == state.FAILED and failure.read(ctx, all[i], p)
    local list = noted and failed or others
    local row = { all[i], p and state.NAME[p.state] or "gone", noted and noted[failure.GROUP] or "" }
    if #list < PARENTS then list[#list + 1] = row end
  end
  for i = 1, math.min(#others, PARENTS - #failed) do failed[#failed + 1] = others[i] end
  return failed
end

-- The flow that it is a job of, and how many this has.
local function flow_of(ctx, jid)
  local flow, number = match(jid, "^(.+)%-(%d+)$")
  local total = flow and flows.read(ctx, flow)
  if not total then return nil end
  local group = members.read(ctx, flow)
  if group then total = total + group.members * group.stride end
  if tonumber(number) < total then return { flow, total } end
end

-- A line of its history: what, when, attempt, worker, name, reason.
local function line_row(line)
  local what = line[AT.what]
  return { history.WHAT[what] or what, line[AT.when], line[AT.attempt], line[AT.worker], line[AT.name], line[AT.cause] }
end

-- The last of its lines, oldest first.
local function tries_of(lines)
  local tries = {}
  for i = math.max(#lines - TRIES + 1, 1), #lines do tries[#tries + 1] = line_row(lines[i]) end
  return tries
end

-- The last line of one of these kinds in this life, if there is one.
local function last_of(lines, one, other)
  for i = #lines, 1, -1 do
    local what = lines[i][AT.what]
    if what == one or what == other then return line_row(lines[i]) end
    if what == history.PUT then return nil end
  end
end

-- What lost attempts, preemptions and workers that do not know its code did to it.
local function about_its_attempts(ctx, queue, jid, r, lines, reply)
  if record.has(r.flags, record.FLAG.BUDGETED) then add(reply, "max_losses", budget.most_losses(ctx, queue, jid, r)) end
  if r.losses > 0 then add(reply, "loss", last_of(lines, history.CRASHED, history.LOST)) end
  local preempted = tonumber(extra.get(ctx, jid, r, "c") or 0)
  if preempted > 0 then
    add(reply, "preempted", preempted)
    add(reply, "preemption", last_of(lines, history.PREEMPTED))
  end
  local seen = unknown.read(ctx, jid, r)
  if seen and seen[3] == r.attempts and r.state ~= state.RUNNING then
    seen[7] = seen[7] and 0 or settings.number(ctx, settings.UNKNOWN_FOR) * 1000
    add(reply, "unknown", seen)
  end
end

local function about_itself(ctx, queue, jid, r, reply)
  local lines = history.lines(ctx, jid, r)
  for _, name in ipairs(FIELDS) do add(reply, name, r[name]) end
  local opts, noted = options.of(ctx, jid, r), failure.read(ctx, jid, r)
  add(reply, "expires", record.has(r.flags, record.FLAG.EXPIRING) and opts.expires or nil)
  add(reply, "limit", opts.limit)
  add(reply, "failure", noted)
  add(reply, "flow", flow_of(ctx, jid))
  add(reply, "unique", unique.facts(ctx, jid, r))
  add(reply, "log", report.kept(ctx, jid, r))
  add(reply, "tries", tries_of(lines))
  about_its_attempts(ctx, queue, jid, r, lines, reply)
end

-- What holds of the state it is in.
local function about_its_state(ctx, queue, jid, r, reply)
  if r.state == state.RUNNING then
    add(reply, "worker", r.worker)
    add(reply, "token", r.token)
    add(reply, "lease_end", tonumber(call("ZSCORE", queue.leases, jid) or nil))
    add(reply, "noticed", record.has(r.flags, record.FLAG.NOTICED) and 1 or 0)
    add(reply, "grace", root.settings(ctx).grace)
    add(reply, "worker_seen", tonumber(call("ZSCORE", ctx.keys.workers, r.worker) or nil))
  elseif r.state == state.DEPENDS then
    add(reply, "open", dependency.count(ctx, jid, r))
    add(reply, "parents", parents_of(ctx, jid, r))
  elseif r.state == state.FAILED then
    local noted = failure.read(ctx, jid, r)
    add(reply, "in_group", noted and failure.size(ctx, noted[failure.GROUP]))
  end
end

-- The state as of now, and the due time of a job that has one.
local function placed(ctx, queue, jid, r)
  local due = r.state == state.SCHEDULED and tonumber(call("ZSCORE", queue.scheduled, jid) or nil)
  if due and due <= ctx.now then return "waiting", due end
  return state.NAME[r.state], due or nil
end

function M.run(ctx, jid)
  local r, reply = job.read(ctx, jid), { "now", ctx.now, "jid", jid }
  if not r then
    add(reply, "state", "gone")
    add(reply, "result", result.read(ctx, jid) and 1 or 0)
    local mark = ctx.cancelled.read(ctx, jid)
    add(reply, "cancelled", mark and mp_unpack(mark) or nil)
    return reply
  end
  local queue = keys.of_queue(ctx, r.queue)
  local name, due = placed(ctx, queue, jid, r)
  add(reply, "state", name)
  add(reply, "due", due)
  about_itself(ctx, queue, jid, r, reply)
  about_its_state(ctx, queue, jid, r, reply)
  if name ~= "complete" and name ~= "failed" then
    local facts = surroundings.of(ctx, queue, jid, r)
    for i = 1, #facts do reply[#reply + 1] = facts[i] end
  end
  return reply
end

return M
