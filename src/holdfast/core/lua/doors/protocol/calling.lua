-- calling: a call of a script, `EVALSHA <sha> 0 <command> <now> [argument]…`.
--
-- The caller brings the time, in seconds; inside it is ms.
local keys = require("base.keys")
local root_timed = require("base.root_timed")
local words = require("doors.protocol.words")
local put_right = require("nouns.put_right")
local M = {}

-- A call that fails on its way, and not by a refusal, leaves no job without a place. The
-- text of what failed keeps the place in the script that it begins with.
local function fail(at, text)
  if not words.refused() then pcall(put_right.run, at) end
  error(text, 0)
end

-- `find` gives what runs a command, (at, args), or nothing.
function M.run(at, find)
  if #KEYS > 0 then words.refuse("No Keys should be provided") end
  if not ARGV[1] then words.refuse("Must provide a command") end
  local run = find(ARGV[1]) or words.refuse("Unknown command " .. ARGV[1])
  local now = words.number(ARGV, 2, 'Arg "now" missing or not a number')
  at.keys = keys.shared()
  local ok, reply = pcall(run, root_timed.open(at, keys.SHARED, now * 1000), ARGV)
  if ok then return reply end
  fail(at, reply)
end

return M
