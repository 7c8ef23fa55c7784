-- native_call: the commands of the reqless protocol on a native root, behind one function.
--
-- They reply as they do there, and refuse in the same words (HF_REFUSED). The time is the
-- store's, and native limits hold.
local checks = require("doors.checks")
local limits = require("doors.native_limits")
local requests = require("doors.requests")
local dialect = require("doors.dialects.reqless")
local commands = require("doors.protocol.commands")
local arguments = require("doors.protocol.arguments")
local workers = require("nouns.lease.worker")

local ADDS = {}
local MOST_KEPT = 1048576 -- bytes of a reply that is kept for a repeat: a pop returns whole jobs

-- A command without the words before it, and with the time where that protocol has it.
local function protocol_arguments(ctx, args)
  local given = { args[3], format("%.3f", ctx.now / 1000) }
  for i = 4, #args do given[i - 1] = args[i] end
  return given
end

return {
  { "call", ADDS, "line number command argument...", requests.row(function(ctx, args)
    arguments.in_library()
    local run = commands.find(args[3] or checks.bad("a command is missing"))
    if not run then arguments.refuse("Unknown command " .. args[3]) end
    local given = protocol_arguments(ctx, args)
    limits.check(args[3], given)
    ctx.dialect = dialect
    local reply = run(ctx, given)
    if args[3] == "queue.pop" then workers.report(ctx, given[4], given, 1, 0) end -- in that protocol a sign of life
    return reply
  end, MOST_KEPT) },
}
