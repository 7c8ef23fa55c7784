-- retry: a job goes back to its queue, one retry poorer.
local text = require("base.text")
local backoff = require("nouns.failure.backoff")
local ending = require("nouns.job.ending")
local failure = require("nouns.failure.failure")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local stats = require("nouns.queue.stats")
local tally = require("nouns.queue.tally")
local M = {}

local AT = history.AT

local FAILED = -1

-- The reply to a call that is sent again, or nil: this attempt did not end so.
local function repeated(ctx, jid, r, worker, token)
  if not r then return nil end
  local what, line = history.ending(ctx, jid, r, worker, token)
  if what == history.RETRIED then return line[AT.data] end
  if what == history.EXHAUSTED then return FAILED end
end

local function exhaust(ctx, queue, jid, r, group, message)
  r.remaining = -1
  local own = group and message
  if not own then message = 'Job exhausted retries in queue "' .. queue.name .. '"' end
  group = group or "failed-retries-" .. queue.name
  ending.exhaust(ctx, queue, jid, r, group, message, own and r.worker or "")
  return FAILED
end

-- Gives back the job of a lease that is held. Returns the retries left, -1 if there
-- were none and the job failed. `delay` is in ms, nil or a table: by the backoff of the job, else by this. `group`
-- and `message` (nil for none) are noted as the job's failure.
function M.one(ctx, delay, group, message, jid, r, data)
  local queue = lease.release(ctx, jid, r)
  job.set_body(ctx, jid, r, data)
  if r.remaining <= 0 then return exhaust(ctx, queue, jid, r, group, message) end
  if type(delay) ~= "number" then delay = backoff.pause(ctx, jid, r, delay) end
  r.remaining = r.remaining - 1
  tally.count(ctx, queue, "retried", 1)
  if ctx.bounds.tallies then stats.count(ctx, queue, "retried") end
  history.add(ctx, jid, r, history.RETRIED, group, text.error_line(message or "", 200), r.remaining)
  if group and message then failure.note(ctx, jid, r, group, message, r.worker) end
  job.place(ctx, queue, jid, r, delay)
  job.write(ctx, jid, r)
  return r.remaining
end

-- The same, or the refusal.
local function settle(ctx, worker, delay, group, message, jid, token, data)
  local r, refused, other = lease.held(ctx, worker, jid, token)
  if not r then
    local before = repeated(ctx, jid, other, worker, token)
    if not before then history.refused(ctx, jid, other, worker, token, "retry") end
    return before or refused
  end
  return M.one(ctx, delay, group ~= "" and group or nil, message ~= "" and message or nil, jid, r, data)
end

-- `args[first … last]` are (jid, token, data or "").
function M.run(ctx, worker, delay, group, message, args, first, last)
  local reply = {}
  for i = first, last, 3 do
    reply[#reply + 1] = settle(ctx, worker, delay, group, message, args[i], tonumber(args[i + 1]), args[i + 2])
  end
  return reply
end

return M
