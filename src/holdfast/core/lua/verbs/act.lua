-- act: an operator changes some jobs. Each of them is changed, or is refused by itself.
local keys = require("base.keys")
local record = require("base.record")
local refuse = require("base.refuse")
local text = require("base.text")
local dependency = require("nouns.dependency.dependency")
local ending = require("nouns.job.ending")
local failure = require("nouns.failure.failure")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local loss = require("nouns.lease.loss")
local operation = require("nouns.operation.operation")
local queues = require("nouns.queue.queue")
local state = require("nouns.job.state")
local tag = require("nouns.job.tag")
local cancel = require("verbs.cancel")
local move = require("verbs.move")
local reprioritise = require("verbs.reprioritise")
local tags = require("verbs.tag")
local timeout = require("verbs.timeout")
local track = require("verbs.track")
local unfail = require("verbs.unfail")
local M = {}

local AS_IT_IS = { data = "", priority = "", klass = "", retries = "" }
local DIGEST = 40 -- letters of a SHA-1
local LONGEST = 400 -- bytes of a refusal: the reply of a full call is kept for a repeat
local PIECE = 64 -- failed jobs that go back to work at once

local function check_state(jid, r, ...)
  for _, wanted in ipairs({ ... }) do
    if r.state == wanted then return end
  end
  refuse.call("WRONG_STATE", jid .. " is " .. state.NAME[r.state])
end

-- A completed job is left as it is.
local function check_open(jid, r)
  if r.state == state.COMPLETE then refuse.call("WRONG_STATE", jid .. " is complete") end
end

-- A failed job goes back to work in its queue, or in another one: with others, of which `later` is the list.
local function retry(ctx, jid, r, name, _, later)
  if later.known[jid] then refuse.call("WRONG_STATE", jid .. " is waiting") end
  check_state(jid, r, state.FAILED)
  local found, refused = unfail.may_revive(ctx, jid, r, later.known)
  if refused then refuse.for_all(refused) end
  later[#later + 1] = { jid = jid, r = found, queue = name ~= "" and name or r.queue, place = later.place }
  later.known[jid] = true
  return r.queue
end

-- A job whose lease has ended, and that no worker took again, fails as if that loss were one too many.
local function fail_stalled(ctx, jid, r, who)
  local queue = keys.of_queue(ctx, r.queue)
  local ends = tonumber(call("ZSCORE", queue.leases, jid) or nil)
  if ends and ends > ctx.now then refuse.call("WRONG_STATE", jid .. " is running") end
  local message = ("lease expired (worker %s, attempt %d); failed by %s"):format(r.worker, r.attempts,
    who ~= "" and who or "an operator")
  loss.fail(ctx, queue, jid, r, queue.name .. "-Lost", message)
  return r.queue
end

-- A job that was put to work again goes back to the failed ones, unless it ran since. `name` is the queue it was in.
local function fail(ctx, jid, r, name, who)
  if r.state == state.RUNNING then return fail_stalled(ctx, jid, r, who) end
  check_state(jid, r, state.WAITING, state.THROTTLED)
  local noted = history.failed_last(ctx, jid, r) and failure.read(ctx, jid, r)
  if not noted then refuse.call("WRONG_STATE", jid .. " has not failed, or has run since it was retried") end
  local from, queue = r.queue, keys.of_queue(ctx, name ~= "" and name or r.queue)
  queues.know(ctx, queue)
  job.remove(ctx, jid, r)
  r.queue = queue.name
  history.add(ctx, jid, r, history.FAILED, noted[failure.GROUP])
  ending.fail_again(ctx, queue, jid, r, noted)
  return from
end

-- What a job has until it is popped, moved or put to work again.
local function life(r) return format("%.0f %.0f ", r.queued, r.attempts) end

-- What undoes it is the new life of the job, and the queue it was in.
local function to_queue(ctx, jid, r, name)
  local from = r.queue
  move.run(ctx, name ~= "" and name or from, 0, jid, AS_IT_IS)
  return life(job.read(ctx, jid)) .. from
end

-- A job that was moved goes back, unless anything happened to it since.
local function move_back(ctx, jid, r, given)
  local was = life(r)
  check_state(jid, r, state.WAITING, state.THROTTLED, state.DEPENDS)
  if sub(given, 1, #was) ~= was then refuse.call("WRONG_STATE", jid .. " was changed after it was moved") end
  move.run(ctx, sub(given, #was + 1), 0, jid, AS_IT_IS)
  return ""
end

local function delete(ctx, jid, r, _, who)
  check_open(jid, r)
  cancel.run(ctx, { jid }, 1, 1, nil, who)
  return ""
end

-- As cancel, of a job that no worker runs.
local function delete_idle(ctx, jid, r, given, who)
  if r.state == state.RUNNING then refuse.call("WRONG_STATE", jid .. " is running") end
  return delete(ctx, jid, r, given, who)
end

-- Its lease ends at once, and it is ready again.
local function expire(ctx, jid)
  timeout.run(ctx, { jid }, 1, 1)
  return ""
end

-- A delayed job starts now.
local function run(ctx, jid, r)
  check_state(jid, r, state.SCHEDULED)
  job.remove(ctx, jid, r)
  job.make_many_ready(ctx, keys.of_queue(ctx, r.queue), { jid }, { r })
  return ""
end

-- A job that waits starts in that many ms.
local function delay(ctx, jid, r, length)
  check_state(jid, r, state.WAITING, state.SCHEDULED, state.STALLED)
  job.remove(ctx, jid, r)
  job.place(ctx, keys.of_queue(ctx, r.queue), jid, r, tonumber(length))
  job.write(ctx, jid, r)
  return ""
end

local function set_priority(ctx, jid, r, given)
  local before = r.priority
  if tonumber(given) == before then return false end
  check_open(jid, r)
  reprioritise.run(ctx, tonumber(given), { jid }, 1, 1)
  return format("%.0f", before)
end

-- How often it may fail; what it used up stays used up.
local function set_retries(ctx, jid, r, given)
  local retries, before = tonumber(given), r.retries
  if retries == before then return false end
  check_open(jid, r)
  r.retries, r.remaining = retries, max(r.remaining + retries - before, 0)
  job.write(ctx, jid, r)
  return format("%.0f", before)
end

-- New data, behind the SHA-1 of those it replaces.
local function set_data(ctx, jid, r, given)
  check_open(jid, r)
  if r.state == state.RUNNING then refuse.call("WRONG_STATE", jid .. " is running") end
  local before, data = job.body(ctx, jid, r), sub(given, DIGEST + 1)
  if before == data then return false end
  if digest(before) ~= sub(given, 1, DIGEST) then
    refuse.call("WRONG_STATE", "the data of " .. jid .. " was changed meanwhile")
  end
  job.set_body(ctx, jid, r, data)
  job.write(ctx, jid, r)
  return ""
end

-- Of the names in `given`, one to a line, each once, those that the job has (`there`), or lacks.
local function names_of(ctx, jid, r, given, there)
  local has, names = {}, {}
  for _, name in ipairs(tag.of(ctx, jid, r)) do has[tostring(name)] = true end
  for name in gmatch(given, "[^\n]+") do
    if (has[name] or false) == there then
      names[#names + 1], has[name] = name, not there
    end
  end
  return names
end

local function tagging(adds)
  return function(ctx, jid, r, given)
    local names = names_of(ctx, jid, r, given, not adds)
    if not names[1] then return false end
    tags.one(ctx, adds, jid, r, names, 1, #names)
    return concat(names, "\n")
  end
end

-- An action gets the job and the value that comes with it. It checks everything before it writes, and
-- returns what undoes it, as text, or false if there was nothing to change.
M.ACTIONS = {
  retry = retry, fail = fail, move = to_queue, cancel = delete, delete = delete_idle, expire = expire, run = run,
  delay = delay, priority = set_priority, retries = set_retries, data = set_data,
  tag = tagging(true), untag = tagging(false), ["move-back"] = move_back,
  track = function(ctx, jid) return track.run(ctx, jid, true) == 1 and "" end,
  untrack = function(ctx, jid) return track.run(ctx, jid, false) == 1 and "" end,
}

-- What one call may take, and what a job takes, in the time that a dependency does; histories are added. A completed
-- job is looked for in the list of these.
local MOST, PLAIN, HEAVY = 768, 3, { move = 5, ["move-back"] = 5, fail = 6, cancel = 6, delete = 6 }
local COMPLETED, BYTES = 250, 600 -- completed jobs, bytes of history that take as long
local LOOKED_FOR = { move = true, tag = true }
local CANCELS = { cancel = true, delete = true }
local function weight_of(ctx, action, jid, r)
  local weight = HEAVY[action] or PLAIN
  if r.state == state.COMPLETE and LOOKED_FOR[action] then return weight + ctx.completed.length(ctx) / COMPLETED end
  if not CANCELS[action] or record.is_plain(r.flags) then return weight end
  return cancel.weight_of(ctx, jid, r) + dependency.count(ctx, jid, r) + dependency.dependents(ctx, jid, r)
end

-- The text of a refusal; any other error ends the call.
local function refusal(thrown)
  local code = type(thrown) == "table" and thrown.err or thrown
  if type(code) == "string" and sub(code, 1, 3) == "HF_" then return text.cut(code, LONGEST) end
  error(thrown, 0)
end

-- Returns 1 (changed) and what undoes it, 0 (nothing to change), or a refusal.
local function one(ctx, action, jid, r, value, who, later)
  if not r then return refuse.job("JOB_NOT_FOUND", jid) end
  local done, undo = pcall(M.ACTIONS[action], ctx, jid, r, value, who, later)
  if not done then return refusal(undo) end
  return undo and 1 or 0, undo
end

-- The jobs of `later` by queue, in the order in which these are named first.
local function by_queue(later)
  local groups = {}
  for _, entry in ipairs(later) do
    local group = groups[entry.queue]
    if not group then
      group = { queue = entry.queue, jids = {}, records = {}, places = {} }
      groups[entry.queue], groups[#groups + 1] = group, group
    end
    local n = #group.jids + 1
    group.jids[n], group.records[n], group.places[n] = entry.jid, entry.r, entry.place
  end
  return groups
end

-- Puts the jobs of `later` to work. What refuses a queue is the result of each of its jobs.
local function revive(ctx, later, reply)
  for _, group in ipairs(by_queue(later)) do
    local done, thrown = pcall(unfail.revive, ctx, keys.of_queue(ctx, group.queue), group.jids, group.records)
    local refused = not done and refusal(thrown)
    for i = 1, refused and #group.places or 0 do reply[group.places[i]] = refused end
  end
end

-- Notes the results of args[first …] with the operation.
local function note(ctx, op, args, first, reply, undo)
  local changed, same, refused = {}, 0, {}
  for i = 1, #reply do
    local jid = args[first + 2 * i - 2]
    if reply[i] == 1 then
      changed[#changed + 1], changed[#changed + 2] = jid, undo[i]
    elseif reply[i] == 0 then
      same = same + 1
    else
      refused[#refused + 1] = { jid, reply[i] }
    end
  end
  operation.note(ctx, op, changed, same, refused)
end

-- The records of all jobs named: of an action that changes no job but its own, and later.
local function all_read(ctx, args, first, last)
  local jids = {}
  for i = first, last, 2 do jids[#jids + 1] = args[i] end
  return job.read_many(ctx, jids)
end

-- `args` from `first` on are (jid, value) pairs, where "" stands for `common`. `op` (nil: none) has the id of an
-- operation, its runner, and what `operation.note` takes. Returns for each job 1 (changed), 0 (nothing to change) or
-- a refusal; for fewer jobs than were given if these take long: then the operation keeps its cursor, and counts them.
function M.run(ctx, action, common, who, op, args, first, last)
  if op then operation.check(ctx, op.id, op.runner) end
  local reply, undo, later, left = {}, {}, { known = {} }, MOST
  local read = action == "retry" and all_read(ctx, args, first, last)
  for i = first, last, 2 do
    local jid, value, n = args[i], args[i + 1], #reply + 1
    local r
    if read then r = read[jid] else r = job.read(ctx, jid) end
    left = left - (r and weight_of(ctx, action, jid, r) or 1)
    if left < history.written(ctx) / BYTES and i > first then
      if op then op.cursor, op.looked, op.matched = nil, #reply, #reply end
      break
    end
    later.place = n
    reply[n], undo[n] = one(ctx, action, jid, r, value ~= "" and value or common, who, later)
    if #later >= PIECE then
      revive(ctx, later, reply)
      later = { known = {} }
    end
  end
  revive(ctx, later, reply)
  if op then note(ctx, op, args, first, reply, undo) end
  return reply
end

return M
