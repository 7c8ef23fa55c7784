-- forget: queues leave the list of known ones, and an empty one leaves nothing behind.
local keys = require("base.keys")
local refuse = require("base.refuse")
local root = require("base.root")
local event = require("nouns.event.event")
local removal = require("nouns.queue.queue_removal")
local settings = require("nouns.setting.settings")
local M = {}

local SETS = { "waiting", "leases", "scheduled", "depends", "throttled", "recurring", "failed" }
local PIECE = 1000 -- keys named in one command

local function jobs_in(queue)
  local count = 0
  for i = 1, #SETS do count = count + call("ZCARD", queue[SETS[i]]) end
  return count
end

-- The statistics of all days that may still be kept.
local function drop_statistics(ctx, queue)
  local names, today = { queue.tallies, queue.minutes }, floor(ctx.now / root.DAY)
  for day = today - settings.number(ctx, settings.STATS_DAYS), today do
    local n = #names
    names[n + 1], names[n + 2], names[n + 3] = queue.stats .. day, queue.wait_log .. day, queue.run_log .. day
    if n > PIECE then
      call("UNLINK", unpack_(names))
      names = {}
    end
  end
  if names[1] then call("UNLINK", unpack_(names)) end
  keys.forget(queue)
end

-- `only_empty`: a queue that has jobs (failed ones too) is refused, and what is forgotten
-- takes its statistics along. Otherwise jobs stay where they are. Returns how many of
-- args[first … last] were known.
function M.run(ctx, only_empty, args, first, last)
  local found, counts, known = {}, {}, 0
  for i = first, last do
    local queue = keys.of_queue(ctx, args[i])
    found[i], counts[i] = queue, jobs_in(queue)
    if only_empty and counts[i] > 0 then
      refuse.call("QUEUE_NOT_EMPTY", ("%s has %d jobs"):format(queue.name, counts[i]))
    end
  end
  for i = first, last do
    known = known + removal.forget(ctx, found[i])
    if counts[i] == 0 then
      ctx.throttles.forget(ctx, found[i])
      removal.reset(ctx, found[i])
    end
    if only_empty then drop_statistics(ctx, found[i]) end
    event.changed(ctx, "queues")
  end
  return known
end

return M
