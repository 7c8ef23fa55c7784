-- act: an operator changes some jobs. Each of them is changed, or is refused by itself.
--
-- An action gets the job and the words that come with it. It checks everything before it writes, and
-- returns what undoes it, as text, or false if there was nothing to change.
local keys = require("base.keys")
local refuse = require("base.refuse")
local failure = require("nouns.failure")
local history = require("nouns.history")
local job = require("nouns.job")
local operation = require("nouns.operation")
local queues = require("nouns.queue")
local state = require("nouns.state")
local tag = require("nouns.tag")
local cancel = require("verbs.cancel")
local move = require("verbs.move")
local reprioritise = require("verbs.reprioritise")
local tags = require("verbs.tag")
local timeout = require("verbs.timeout")
local track = require("verbs.track")
local unfail = require("verbs.unfail")
local M = {}

local UNCHANGED = { data = "", priority = "", klass = "", retries = "" }
local DIGEST = 40 -- letters of a SHA-1

local function check_state(jid, r, ...)
  for _, wanted in ipairs({ ... }) do
    if r.state == wanted then return end
  end
  refuse.call("WRONG_STATE", jid .. " is " .. state.NAME[r.state])
end

local A = {}
M.ACTIONS = A

-- A failed job goes back to work in its queue, or in another one.
function A.retry(ctx, jid, r, name)
  check_state(jid, r, state.FAILED)
  local from, queue = r.queue, keys.of_queue(ctx, name ~= "" and name or r.queue)
  local first, idle = queues.enter(ctx, queue, 1)
  unfail.revive(ctx, queue, jid, r, first)
  if idle then queues.signal(queue) end
  return from
end

-- A job that was retried goes back to the failed ones, unless it ran since. `name`: the queue it came from.
function A.fail(ctx, jid, r, name)
  check_state(jid, r, state.WAITING)
  local noted = failure.read(ctx, jid, r)
  if not noted then refuse.call("WRONG_STATE", jid .. " has not failed before") end
  job.withdraw(ctx, jid, r)
  if name ~= "" then r.queue = name end
  history.add(ctx, jid, r, history.FAILED, noted[1])
  failure.restore(ctx, keys.of_queue(ctx, r.queue), jid, r, noted)
  return ""
end

function A.move(ctx, jid, r, name)
  local from = r.queue
  move.run(ctx, name ~= "" and name or from, 0, jid, UNCHANGED)
  return from
end

function A.cancel(ctx, jid, r, _, who)
  check_state(jid, r, state.WAITING, state.RUNNING, state.FAILED, state.SCHEDULED, state.DEPENDS, state.THROTTLED,
    state.STALLED)
  cancel.run(ctx, { jid }, 1, 1, nil, who)
  return ""
end

-- Its lease ends at once, and it is ready again.
function A.expire(ctx, jid)
  timeout.run(ctx, { jid }, 1, 1)
  return ""
end

-- A delayed job starts now.
function A.run(ctx, jid, r)
  check_state(jid, r, state.SCHEDULED)
  job.withdraw(ctx, jid, r)
  job.make_many_ready(ctx, keys.of_queue(ctx, r.queue), { jid }, { r })
  return ""
end

-- A job that waits starts in so many ms.
function A.delay(ctx, jid, r, length)
  check_state(jid, r, state.WAITING, state.SCHEDULED)
  job.withdraw(ctx, jid, r)
  job.place(ctx, keys.of_queue(ctx, r.queue), jid, r, tonumber(length))
  job.write(ctx, jid, r)
  return ""
end

function A.priority(ctx, jid, r, given)
  local priority, before = tonumber(given), r.priority
  if priority == before then return false end
  reprioritise.run(ctx, priority, { jid }, 1, 1)
  return format("%.0f", before)
end

-- How often it may fail; what it used up stays used up.
function A.retries(ctx, jid, r, given)
  local retries, before = tonumber(given), r.retries
  if retries == before then return false end
  check_state(jid, r, state.WAITING, state.RUNNING, state.FAILED, state.SCHEDULED, state.DEPENDS, state.THROTTLED,
    state.STALLED)
  r.retries, r.remaining = retries, max(r.remaining + retries - before, 0)
  job.write(ctx, jid, r)
  return format("%.0f", before)
end

-- New data, behind the SHA-1 of those it replaces.
function A.data(ctx, jid, r, given)
  check_state(jid, r, state.WAITING, state.FAILED, state.SCHEDULED, state.DEPENDS, state.THROTTLED, state.STALLED)
  if digest(job.body(ctx, jid, r)) ~= sub(given, 1, DIGEST) then
    refuse.call("WRONG_STATE", "the data of " .. jid .. " was changed meanwhile")
  end
  job.set_body(ctx, jid, r, sub(given, DIGEST + 1))
  job.write(ctx, jid, r)
  return ""
end

local function names_of(given)
  local names = {}
  for name in gmatch(given, "[^\n]+") do names[#names + 1] = name end
  return names
end

-- Those of `names` that are not in `others`, one to a line.
local function difference(names, others)
  local known, found = {}, {}
  for i = 1, #others do known[others[i]] = true end
  for i = 1, #names do
    if not known[names[i]] then found[#found + 1] = names[i] end
  end
  return found[1] and concat(found, "\n") or false
end

function A.tag(ctx, jid, r, given)
  local before, names = tag.of(ctx, jid, r), names_of(given)
  local after = tags.one(ctx, true, jid, r, names, 1, #names)
  return difference(after, before)
end

function A.untag(ctx, jid, r, given)
  local before, names = tag.of(ctx, jid, r), names_of(given)
  local after = tags.one(ctx, false, jid, r, names, 1, #names)
  return difference(before, after)
end

function A.track(ctx, jid) return track.run(ctx, jid, true) == 1 and "" end

function A.untrack(ctx, jid) return track.run(ctx, jid, false) == 1 and "" end

local function one(ctx, act, jid, value, who)
  local r = job.read(ctx, jid) or refuse.call("JOB_NOT_FOUND", jid)
  return act(ctx, jid, r, value, who)
end

-- The text of a refusal; any other error ends the call.
local function refusal(thrown)
  local text = type(thrown) == "table" and thrown.err or thrown
  if type(text) == "string" and sub(text, 1, 3) == "HF_" then return text end
  error(thrown, 0)
end

-- `args` from `first` on are (jid, value) pairs, where "" stands for `common`. `op` (nil: none) has the id of an
-- operation, its runner, length of its lease, cursor, how many were looked at and matched. Returns for each job 1
-- (changed), 0 (nothing to change) or a refusal.
function M.run(ctx, action, common, who, op, args, first, last)
  if op then operation.check(ctx, op.id, op.runner) end
  local act, reply, changed, same, refused = A[action], {}, {}, 0, {}
  for i = first, last, 2 do
    local jid, value = args[i], args[i + 1]
    local ok, undo = pcall(one, ctx, act, jid, value ~= "" and value or common, who)
    local result = not ok and refusal(undo) or undo and 1 or 0
    reply[#reply + 1] = result
    if result == 1 then
      changed[#changed + 1], changed[#changed + 2] = jid, undo
    elseif result == 0 then
      same = same + 1
    else
      refused[#refused + 1] = { jid, result }
    end
  end
  if op then
    operation.note(ctx, op.id, changed, same, refused)
    operation.advance(ctx, op.id, op.length, op.cursor, op.looked, op.matched)
  end
  return reply
end

return M
