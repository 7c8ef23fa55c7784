-- call_weight: how much of a call some jobs take. A call that would take too long is refused.
local record = require("base.record")
local refuse = require("base.refuse")
local dependency = require("nouns.dependency.dependency")
local job = require("nouns.job.job")
local tag = require("nouns.job.tag")
local M = {}

local FLAGGED, NAMED = 2, 5 -- a job that is more than its record, one that names throttles
local MOST_REPLACED = 1024 -- tags and open parents

-- Looks at the first `count` of these records, of jobs that are going to end. A worker that
-- settles jobs as they end never comes near the limit.
function M.check_ended(ctx, records, count)
  local weight, most = 0, ctx.bounds.settled
  for i = 1, count do
    local flags = record.flags_of(records[i])
    weight = weight + (record.is_plain(flags) and 1 or record.has(flags, record.FLAG.NAMED) and NAMED or FLAGGED)
  end
  if weight <= most then return end
  refuse.call("TOO_MANY", "at most " .. most .. " a call: a job counts 1, with tags and the like 2, with throttles 5")
end

-- The tags and open parents that a job has and would lose.
local function replaced(ctx, jid, opts)
  local r = job.read(ctx, jid)
  if not r then return 0 end
  return #tag.of(ctx, jid, r) + (opts and opts.depends and dependency.count(ctx, jid, r) or 0)
end

-- Looks at what jobs that are put again would lose: tables of jid and opts (nil: none).
function M.check_replaced(ctx, jobs)
  local count = 0
  for i = 1, #jobs do
    count = count + replaced(ctx, jobs[i].jid, jobs[i].opts)
    if count > MOST_REPLACED then
      refuse.call("TOO_MANY", "these jobs have more than " .. MOST_REPLACED ..
        " tags and parents that would be replaced")
    end
  end
end

return M
