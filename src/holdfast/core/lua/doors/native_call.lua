-- native_call: the commands of the reqless protocol on a native root, behind one function.
--
-- They answer as they do there, and refuse in the same words (HF_REFUSED). The time is the
-- store's, and native limits hold.
local late = require("base.late")
local checks = require("doors.checks")
local limits = require("doors.native_limits")
local numbered = require("doors.numbered")
local accent = require("doors.protocol.accent")
local commands = require("doors.protocol.commands")
local words = require("doors.protocol.words")
local workers = require("nouns.worker")

local ADDS = {}
local MOST_KEPT = 1048576 -- bytes of a reply that is kept for a repeat: a pop answers with whole jobs

local format
late.bind(function() format = string.format end)

-- A command without the words before it, and with the time where that protocol has it.
local function spoken(at, args)
  local said = { args[3], format("%.3f", at.now / 1000) }
  for i = 4, #args do said[i - 1] = args[i] end
  return said
end

return {
  { "call", ADDS, "line number command argument...", numbered.row(function(at, args)
    words.in_library()
    local run = commands.find(args[3] or checks.bad("a command is missing"))
    if not run then words.refuse("Unknown command " .. args[3]) end
    local said = spoken(at, args)
    limits.check(args[3], said)
    at.accent = accent
    local reply = run(at, said)
    if args[3] == "queue.pop" then workers.say(at, said[4], said, 1, 0) end -- in that protocol a sign of life
    return reply
  end, MOST_KEPT) },
}
