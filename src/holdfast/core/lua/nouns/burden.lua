-- burden: what jobs that are put again have already and would lose. A call takes only so
-- much from them.
local refuse = require("base.refuse")
local dependency = require("nouns.dependency")
local job = require("nouns.job")
local tag = require("nouns.tag")
local M = {}

local MOST = 1024 -- tags and open parents

local function of(ctx, jid, opts)
  local r = job.read(ctx, jid)
  if not r then return 0 end
  return #tag.of(ctx, jid, r) + (opts and opts.depends and dependency.count(ctx, jid, r) or 0)
end

-- Refuses the call if its jobs, tables of jid and wish (nil: nothing), have more than that.
function M.check(ctx, jobs)
  local count = 0
  for i = 1, #jobs do
    count = count + of(ctx, jobs[i].jid, jobs[i].opts)
    if count > MOST then
      refuse.call("TOO_MANY", "these jobs have more than " .. MOST .. " tags and parents that would be replaced")
    end
  end
end

return M
