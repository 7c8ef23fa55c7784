-- native_lists: the native door's rows for reading sets page by page, and for failed jobs.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local bounds = require("base.bounds")
local checks = require("doors.checks")
local ids = require("doors.ids")
local requests = require("doors.requests")
local explain = require("verbs.explain")
local inspect = require("verbs.inspect")
local list = require("verbs.list")
local unfail = require("verbs.unfail")

local MOST, MOST_GROUPS, MOST_UNFAILED = bounds.BATCH, 200, 200 -- the last two cost more each
local ADDS, READS = {}, { "no-writes" }
local NAMELESS = {
  completed = true, tracked = true, workers = true, versions = true, queues = true, topics = true, declared = true,
}
local DIRECTIONS = { [""] = true, up = true, down = true }

-- Which set, of whom. The second is "" where a set has no owner.
local function which(args)
  local set = args[1]
  if not set or not list.is_known(set) then checks.expected("set", "the name of a set", set) end
  return set, NAMELESS[set] and "" or checks.name(args, 2, "name")
end

return {
  { "list", READS, "set name after_score after_member count direction", function(ctx, args)
    local set, name = which(args)
    local score, member = ids.place(args, 3)
    local count, direction = checks.number(args, 5, "count", 0, MOST), args[6] or ""
    if not DIRECTIONS[direction] then checks.expected("direction", "up, down or nothing", direction) end
    if set == "completed" then
      if direction == "up" then checks.bad("completed jobs can only be listed newest first") end
      if score ~= "" then checks.time(args, 3, "place") end
    end
    return list.run(ctx, set, name, score, member, count, direction)
  end },
  { "failures", READS, "cursor count", function(ctx, args)
    return inspect.failures(ctx, ids.cursor(args, 1), checks.number(args, 2, "count", 1, MOST))
  end },
  { "failure_groups", READS, "cursor count", function(ctx, args)
    return inspect.failure_groups(ctx, ids.cursor(args, 1), checks.number(args, 2, "count", 1, MOST_GROUPS))
  end },
  { "explain", READS, "jid", function(ctx, args) return explain.run(ctx, checks.name(args, 1, "jid")) end },
  { "unfail", ADDS, "line number queue group count", requests.row(function(ctx, args)
    local queue, group = checks.name(args, 3, "queue"), checks.name(args, 4, "group")
    return unfail.run(ctx, queue, group, checks.number(args, 5, "count", 1, MOST_UNFAILED))
  end) },
}
