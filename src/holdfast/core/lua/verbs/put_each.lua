-- put_each: jobs come into a queue one by one, parents before those that wait for them.
local call_weight = require("nouns.operation.call_weight")
local cycle = require("nouns.dependency.dependency_cycle")
local job = require("nouns.job.job")
local refuse = require("base.refuse")
local put_one = require("verbs.put_one")
local M = {}

local NOTHING = {}

-- A parent of this call that was refused and is not there: a job would wait for it for ever.
local function missing(ctx, refused, opts)
  for _, parent in ipairs(opts and next(refused) and opts.depends or NOTHING) do
    if refused[parent] and not job.read(ctx, parent) then return parent end
  end
end

-- `closes` is the parent with which the job closes a cycle, if it does.
local function put(ctx, target, mode, one, closes, refused)
  if closes then return cycle.between(one.jid, closes) end
  local parent = missing(ctx, refused, one.opts)
  if parent then
    return refuse.job("DEPENDENCY_REFUSED", one.jid .. " waits for " .. parent .. ", which was refused")
  end
  return put_one.run(ctx, target, mode, one.jid, one.klass, one.data, one.opts)
end

-- [how many were added or moved, (index from 0, code) of the others; `again` of those that were moved too]
local function reply_of(codes, moved, count)
  local reply = { count }
  for i = 1, count do
    local code = codes[i] or moved[i] and "again"
    if code then
      local n = #reply
      reply[n + 1], reply[n + 2] = i - 1, code
      if codes[i] then reply[1] = reply[1] - 1 end
    end
  end
  return reply
end

-- `jobs` are as those of `put.run_x`, whose opts may be nil; `target` as for `put_one`.
function M.run(ctx, target, mode, jobs)
  if put_one.MOVES[mode] and (jobs[2] or jobs[1] and jobs[1].opts) then call_weight.check_replaced(ctx, jobs) end
  local codes, moved, refused, order, cycles = {}, {}, {}, nil, NOTHING
  if jobs.depend then order, cycles = cycle.in_order(jobs) end
  for n = 1, #jobs do
    local i = order and order[n] or n
    local code, was_moved = put(ctx, target, mode, jobs[i], cycles[i], refused)
    if code and code ~= "again" then refused[jobs[i].jid] = true end
    codes[i], moved[i] = code, was_moved
  end
  return reply_of(codes, moved, #jobs)
end

return M
