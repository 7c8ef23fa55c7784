-- native_dependencies: the native door's rows for jobs that wait for others.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local checks = require("doors.checks")
local numbered = require("doors.numbered")
local depend = require("verbs.depend")

local MOST = 512
local MODES = { add = true, remove = true, all = true }
local ADDS, READS = {}, { "no-writes" }

-- Where a page begins: "score jid", as it was answered.
local function cursor(args, i)
  local given = args[i]
  if given == "" then return nil end
  local score, member = (given or ""):match("^(%d+) (.+)$")
  if not score then checks.bad("a cursor is what the page before answered") end
  return score, member
end

return {
  { "depend", ADDS, "line number mode jid parent...", numbered.row(function(at, args)
    local mode, jid = args[3], checks.name(args, 4, "jid")
    if not MODES[mode] then checks.bad("mode is add, remove or all") end
    local last = checks.names(args, 5, "parent")
    if mode == "all" and last >= 5 then checks.bad("all takes no names") end
    return depend.run(at, mode, jid, args, 5, last)
  end) },
  { "dependents", READS, "jid cursor count", function(at, args)
    local jid, score, member = checks.name(args, 1, "jid"), cursor(args, 2)
    return depend.dependents(at, jid, score, member, checks.number(args, 3, "count", 1, MOST))
  end },
}
