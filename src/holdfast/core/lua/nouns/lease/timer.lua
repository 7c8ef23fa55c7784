-- timer: jobs that become ready at a moment.
local admission = require("nouns.job.admission")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local PIECE = 512 -- jobs moved at once

local function promote_some(ctx, queue, bound)
  local found = call("ZRANGE", queue.scheduled, "-inf", ctx.now, "BYSCORE", "LIMIT", 0, bound, "WITHSCORES")
  if #found == 0 then return 0 end
  local due, jids, records, since = {}, {}, {}, {}
  for i = 1, #found / 2 do
    local jid = found[2 * i - 1]
    due[i] = jid
    local r = job.read(ctx, jid)
    if r and r.state == state.SCHEDULED then
      if not admission.when_due(ctx, queue, jid, r) then
        local n = #jids + 1
        jids[n], records[n], since[n] = jid, r, tonumber(found[2 * i])
      end
    end
  end
  call("ZREM", queue.scheduled, unpack_(due))
  job.make_many_ready(ctx, queue, jids, records, nil, nil, since)
  return #due
end

-- Moves up to `bound` due jobs to the ready set. Returns how many.
function M.promote(ctx, queue, bound)
  local moved = 0
  while moved < bound do
    local step = bound - moved < PIECE and bound - moved or PIECE
    local some = promote_some(ctx, queue, step)
    moved = moved + some
    if some < step then break end
  end
  return moved
end

return M
