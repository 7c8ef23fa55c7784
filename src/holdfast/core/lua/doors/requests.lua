-- requests: calls that carry a request number, and what a retry of them returns.
--
-- One rule for all: the kept reply. Only pop rebuilds its rows, from the jids and
-- tokens that were kept, less what has ended since.
local keys = require("base.keys")
local attempt = require("nouns.job.attempt")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local replay = require("nouns.lease.replay")
local checks = require("doors.checks")
local complete = require("verbs.complete")
local pop = require("verbs.pop")
local M = {}

local ROW = 4 -- values of a row: jid, facts, data, extras
local BETWEEN, BEFORE_TOKEN = "\n", "\t" -- no name holds a control character

-- Runs `verb` unless this number has a reply already. `most` bytes of its reply are kept (nil:
-- 4 kB).
function M.once(ctx, line, number, verb, most)
  local kept = replay.find(ctx, line, number)
  if kept then return replay.reply(kept) end
  local reply = verb()
  replay.keep_reply(ctx, line, number, reply, most)
  return reply
end

-- A row whose first two arguments are line and number. `run` checks the others
-- before it writes.
function M.row(run, most)
  return function(ctx, args)
    local line, number = checks.optional(args, 1, "line"), checks.time(args, 2, "number")
    return M.once(ctx, line, number, function() return run(ctx, args) end, most)
  end
end

-- Appends the rows of grants that are still held. A token that is not the time
-- of the grant stands behind its jid.
local function rows_again(ctx, grant, kept)
  local popped, jids = replay.grants(kept)
  for entry in jids:gmatch("[^" .. BETWEEN .. "]+") do
    local jid, token = entry:match("^([^" .. BEFORE_TOKEN .. "]+)" .. BEFORE_TOKEN .. "?(%d*)$")
    local r = job.read(ctx, jid)
    if r and lease.is_held(r, grant.worker, tonumber(token) or popped) then
      local ends = tonumber(call("ZSCORE", keys.of_queue(ctx, r.queue).leases, jid) or ctx.now)
      attempt.row(ctx, grant.out, jid, r, ends, ends - r.popped)
    end
  end
end

-- What is kept of `got` rows behind `start`.
local function to_keep(ctx, grant, start, got)
  local out, kept = grant.out, {}
  for i = 1, got do
    local jid = out[start + 1 + (i - 1) * ROW]
    local token = grant.odd and job.read(ctx, jid).token
    kept[i] = token and token ~= ctx.now and ("%s%s%.0f"):format(jid, BEFORE_TOKEN, token) or jid
  end
  return concat(kept, BETWEEN)
end

-- Appends the grants behind `start` to `grant.out`, whose element there is the due time.
local function pop_once(ctx, grant, line, number, want, args, first, last, kept)
  local out = grant.out
  local start = #out
  if kept then
    out[start] = pop.due(ctx, args, first, last)
    return rows_again(ctx, grant, kept)
  end
  local got, due = pop.run(ctx, grant, want, args, first, last)
  out[start] = due
  -- A call for no job is kept too: a parent asks so for a child that died in this call, whose bytes
  -- may still be on their way.
  if line == "" or (got == 0 and want > 0) then return end
  local is_single = got == 1 and not grant.odd
  replay.keep_grants(ctx, line, number, is_single and out[start + 1] or to_keep(ctx, grant, start, got))
end

function M.pop(ctx, grant, line, number, want, args, first, last)
  pop_once(ctx, grant, line, number, want, args, first, last, replay.find(ctx, line, number))
  return grant.out
end

-- [how many, (jid, code) of the lost and of those that were complete before].
function M.complete(ctx, worker, args, first, last)
  local lost = {}
  complete.run(ctx, worker, args, first, last, lost)
  local reply = { (last - first + 1) / complete.WIDTH - #lost / 2 }
  for i = 1, #lost do reply[i + 1] = lost[i] end
  return reply
end

-- [how many lost, (jid, code) of these, due, rows …].
function M.complete_pop(ctx, grant, line, number, want, args, first, last)
  local kept = replay.find(ctx, line, number) -- refuses a straggler before anything is written
  local lost, out = {}, {}
  complete.run(ctx, grant.worker, args, first, last, lost)
  out[1] = #lost / 2
  for i = 1, #lost do out[i + 1] = lost[i] end
  out[#out + 1] = -1
  grant.out = out
  pop_once(ctx, grant, line, number, want, args, 7, first - 1, kept)
  return out
end

return M
