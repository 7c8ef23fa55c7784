-- calling: a call of a script, `EVALSHA <sha> 0 <command> <now> [argument]…`.
--
-- The caller brings the time, in seconds; inside it is ms.
local keys = require("base.keys")
local root = require("base.root")
local words = require("doors.protocol.words")
local M = {}

-- `find` gives what runs a command, (at, args), or nothing.
function M.run(at, find)
  if #KEYS > 0 then words.refuse("No Keys should be provided") end
  if not ARGV[1] then words.refuse("Must provide a command") end
  local run = find(ARGV[1]) or words.refuse("Unknown command " .. ARGV[1])
  local now = words.number(ARGV, 2, 'Arg "now" missing or not a number')
  at.keys = keys.shared()
  return run(root.open_at(at, keys.SHARED, now * 1000), ARGV)
end

return M
