-- find_work: a worker of many queues asks which of them may have something to hand out.
local keys = require("base.keys")
local due_time = require("nouns.queue.due")
local index = require("nouns.job.index")
local scan = require("nouns.queue.queue_scan")
local M = {}

M.WILL_NOT_WAIT, M.WILL_WAIT, M.WOKEN = 0, 1, 2
local TIMERS = 150 -- that have come, looked at in one call

-- The queues whose timer has come and that may have something due, and whether more timers have to be looked at.
local function overdue(ctx, first)
  local names, found = index.overdue(ctx, first, TIMERS), {}
  for i = 1, #names do
    if due_time.has_come(ctx, keys.of_queue(ctx, names[i])) then found[#found + 1] = names[i] end
  end
  return found, #names == TIMERS, #names == TIMERS and #found < TIMERS
end

-- The ms after which the caller has to ask again if it finds nothing, -1 for never. `is_done`, `again`: of the round.
local function away(ctx, is_done, again, is_cut)
  if is_cut or not is_done then return 0 end
  local due = index.away(ctx)
  if not again or due >= 0 and due <= again then return due end
  return again
end

-- The names of up to `most` queues from place `first` on that have ready jobs, and of others that have something due.
-- `mode` is WILL_WAIT of a worker that is going to wait if none is its own, WOKEN of one that was woken and can take no
-- more: it gets no names. Returns the ms until something else is due (-1: never), whether there may be more names (1 or
-- 0), how many are of the first kind, and the names.
function M.run(ctx, fleet, mode, first, most)
  if mode == M.WOKEN then
    index.hand_on(ctx, fleet)
    return { -1, 0, 0 }
  end
  if mode == M.WILL_WAIT then index.wait(ctx, fleet) end
  local is_done, again = scan.continue(ctx)
  local ready = index.ready(ctx, first, most)
  local due, may_be_more, is_cut = overdue(ctx, floor(first / most) * TIMERS)
  local reply = { away(ctx, is_done, again, is_cut), (#ready == most or may_be_more or #due > most) and 1 or 0, #ready }
  for i = 1, #ready do reply[#reply + 1] = ready[i] end
  for i = 1, min(#due, most) do reply[#reply + 1] = due[i] end
  return reply
end

return M
