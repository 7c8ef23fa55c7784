-- advance: a job is done here and goes on in the next queue, under the same jid
-- and in the same life. Whoever depends on it keeps waiting.
local late = require("base.late")
local batch = require("base.batch")
local keys = require("base.keys")
local failure = require("nouns.failure")
local history = require("nouns.history")
local job = require("nouns.job")
local lease = require("nouns.lease")
local placement = require("nouns.placement")
local queues = require("nouns.queue")
local stats = require("nouns.stats")
local M = {}

local pack
late.bind(function() pack = struct.pack end)

-- Why a lease cannot be settled so: the job went on before, or it is lost.
function M.refusal(at, jid, r, worker, token)
  if r and history.ending(at, jid, r, worker, token) == history.ADVANCED then return "again" end
  return lease.refusal(jid, r)
end

-- One line, or where that is none two: the job is done, and put.
local function tell(at, jid, r, name)
  if not at.untold[history.ADVANCED] then return history.tell(at, jid, r, history.ADVANCED, name) end
  history.tell(at, jid, r, history.DONE)
  history.tell(at, jid, r, history.PUT, name)
end

-- Ends a lease that is held; the job is in the next queue, but has no place there yet.
function M.leave(at, next_queue, jid, r, data)
  queues.know(at, next_queue)
  local queue = lease.release(at, jid, r)
  tell(at, jid, r, next_queue.name)
  stats.ran(at, queue, pack("<d", at.now - r.popped))
  failure.clear(at, jid, r)
  if at.events.tracked then at.events.tracked(at, "completed", jid, r) end
  if at.events.advanced then at.events.advanced(at, jid, next_queue.name, queue.name) end
  r.queue, r.queued, r.remaining, r.losses = next_queue.name, at.now, r.retries, 0
  at.record.begin(r, at.now)
  job.set_body(at, jid, r, data)
end

local function one(at, worker, next_queue, delay, jid, token, data)
  local r, _, other = lease.held(at, worker, jid, token)
  if not r then return M.refusal(at, jid, other, worker, token) end
  M.leave(at, next_queue, jid, r, data)
  placement.go_on(at, next_queue, jid, r, delay)
end

-- `args[first … last]` are (jid, token, data or ""); `delay` is in ms. Returns how
-- many went on, then (jid, code) of the others.
function M.run(at, worker, name, delay, args, first, last)
  local next_queue = keys.of_queue(at, name)
  return batch.settle(args, first, last, function(jid, token, data)
    return one(at, worker, next_queue, delay, jid, token, data)
  end)
end

return M
