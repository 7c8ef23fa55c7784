-- budget: what a job pays with when an attempt was lost: its process died, or its lease
-- expired.
--
-- A job with budgets of its own (flag BUDGETED) has a number of losses apart from its
-- retries. The others pay with a retry, as the protocol demands. `ctx.budgets` is this file, or
-- false in roots where all jobs do so.
local record = require("base.record")
local queue_bounds = require("nouns.queue.queue_bounds")
local history = require("nouns.job.history")
local options = require("nouns.job.options")
local M = {}

local BUDGETED = record.FLAG.BUDGETED

-- How many attempts a job with budgets of its own may lose: the lower of its own number and
-- its queue's.
function M.most_losses(ctx, queue, jid, r)
  local own, of_queue = options.of(ctx, jid, r).losses or options.LOSSES, queue_bounds.most_losses(queue)
  return of_queue and of_queue < own and of_queue or own
end

-- Whether another loss is one too many.
function M.is_spent(ctx, queue, jid, r)
  if record.has(r.flags, BUDGETED) then return r.losses >= M.most_losses(ctx, queue, jid, r) end
  return r.remaining <= 0
end

local function cause_of(r, what, cause)
  local by = ("(worker %s, attempt %d)"):format(r.worker, r.attempts)
  if what == history.LOST then return "lease expired " .. by end
  if cause == "" then return "process died " .. by end
  return ("process died %s %s %s"):format(cause:sub(1, 4) == "exit" and "with" or "by", cause, by)
end

-- Pays for a lost attempt. `what` is its line in the history, CRASHED or LOST; `cause` is
-- known of a crash: a signal or an exit status, or "". Returns nothing if the job may be
-- handed out again, else the group and the message with which it fails.
function M.pay(ctx, queue, jid, r, what, cause)
  local by_retry = not record.has(r.flags, BUDGETED)
  history.add(ctx, jid, r, what, by_retry and "retries" or "losses", cause)
  if by_retry then
    local message = queue_bounds.pay(queue, r)
    if message and what ~= history.LOST then message = ("%s: %s"):format(message, cause_of(r, what, cause)) end
    return message and "failed-retries-" .. queue.name, message
  end
  r.losses = r.losses < 255 and r.losses + 1 or 255
  local most = M.most_losses(ctx, queue, jid, r)
  if r.losses <= most then return nil end
  local group = queue.name .. (what == history.LOST and "-Lost" or "-Crashed")
  return group, ("%s; %d losses, max_losses %d"):format(cause_of(r, what, cause), r.losses, most)
end

return M
