-- numbered: calls that carry a request number, and what a repeat of them answers.
--
-- One rule for all: the kept reply. Only pop rebuilds its rows, from the jids and
-- tokens that were kept, less what has ended since.
local late = require("base.late")
local keys = require("base.keys")
local attempt = require("nouns.attempt")
local job = require("nouns.job")
local lease = require("nouns.lease")
local replay = require("nouns.replay")
local checks = require("doors.checks")
local complete = require("verbs.complete")
local pop = require("verbs.pop")
local M = {}

local ROW = 4 -- values of a row: jid, facts, data, extras
local BETWEEN, BEFORE_TOKEN = "\n", "\t" -- no name holds a control character

local call, concat
late.bind(function() call, concat = redis.call, table.concat end)

-- Runs `verb` unless this number was answered before. `most` bytes of its reply are kept (nil:
-- as usual).
function M.once(at, line, number, verb, most)
  local kept = replay.find(at, line, number)
  if kept then return replay.reply(kept) end
  local reply = verb()
  replay.keep_reply(at, line, number, reply, most)
  return reply
end

-- A row whose first two arguments are line and number. `run` checks the others
-- before it writes.
function M.row(run, most)
  return function(at, args)
    local line, number = checks.optional(args, 1, "line"), checks.time(args, 2, "number")
    return M.once(at, line, number, function() return run(at, args) end, most)
  end
end

-- Appends the rows of grants that are still held. A token that is not the time
-- of the grant stands behind its jid.
local function rows_again(at, give, kept)
  local popped, jids = replay.grants(kept)
  for entry in jids:gmatch("[^" .. BETWEEN .. "]+") do
    local jid, token = entry:match("^([^" .. BEFORE_TOKEN .. "]+)" .. BEFORE_TOKEN .. "?(%d*)$")
    local r = job.read(at, jid)
    if r and lease.is_held(r, give.worker, tonumber(token) or popped) then
      local ends = tonumber(call("ZSCORE", keys.of_queue(at, r.queue).leases, jid) or at.now)
      attempt.row(at, give.out, jid, r, ends, ends - r.popped)
    end
  end
end

-- What is kept of `got` rows behind `start`.
local function to_keep(at, give, start, got)
  local out, kept = give.out, {}
  for i = 1, got do
    local jid = out[start + 1 + (i - 1) * ROW]
    local token = give.odd and job.read(at, jid).token
    kept[i] = token and token ~= at.now and ("%s%s%.0f"):format(jid, BEFORE_TOKEN, token) or jid
  end
  return concat(kept, BETWEEN)
end

-- Appends the grants behind `start` to `give.out`, whose element there is the due time.
local function grant(at, give, line, number, want, args, first, last, kept)
  local out = give.out
  local start = #out
  if kept then
    out[start] = pop.due(at, args, first, last)
    return rows_again(at, give, kept)
  end
  local got, due = pop.run(at, give, want, args, first, last)
  out[start] = due
  if got == 0 or line == "" then return end
  local usual = got == 1 and not give.odd
  replay.keep_grants(at, line, number, usual and out[start + 1] or to_keep(at, give, start, got))
end

function M.pop(at, give, line, number, want, args, first, last)
  grant(at, give, line, number, want, args, first, last, replay.find(at, line, number))
  return give.out
end

-- [how many, (jid, code) of the lost and of those that were complete before].
function M.complete(at, worker, args, first, last)
  local lost = {}
  complete.run(at, worker, args, first, last, lost)
  local reply = { (last - first + 1) / complete.WIDTH - #lost / 2 }
  for i = 1, #lost do reply[i + 1] = lost[i] end
  return reply
end

-- [how many lost, (jid, code) of these, due, rows …].
function M.complete_pop(at, give, line, number, want, args, first, last)
  local kept = replay.find(at, line, number) -- refuses a straggler before anything is written
  local lost, out = {}, {}
  complete.run(at, give.worker, args, first, last, lost)
  out[1] = #lost / 2
  for i = 1, #lost do out[i + 1] = lost[i] end
  out[#out + 1] = -1
  give.out = out
  grant(at, give, line, number, want, args, 7, first - 1, kept)
  return out
end

return M
