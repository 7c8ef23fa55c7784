-- script_call: a call of a script, `EVALSHA <sha> 0 <command> <now> [argument]…`.
--
-- The caller brings the time, in seconds; inside it is ms.
local keys = require("base.keys")
local root_timed = require("base.root_timed")
local arguments = require("doors.protocol.arguments")
local rollback = require("nouns.lease.rollback")
local M = {}

-- A call that fails on its way, and not by a refusal, leaves no job without a place. The
-- text of what failed keeps the place in the script that it begins with.
local function fail(ctx, text)
  if not arguments.refused() then pcall(rollback.run, ctx) end
  error(text, 0)
end

-- `find` gives what runs a command, (at, args), or nothing.
function M.run(ctx, find)
  if #KEYS > 0 then arguments.refuse("No Keys should be provided") end
  if not ARGV[1] then arguments.refuse("Must provide a command") end
  local run = find(ARGV[1]) or arguments.refuse("Unknown command " .. ARGV[1])
  local now = arguments.number(ARGV, 2, 'Arg "now" missing or not a number')
  ctx.keys = keys.shared()
  local ok, reply = pcall(run, root_timed.open(ctx, keys.SHARED, now * 1000), ARGV)
  if ok then return reply end
  fail(ctx, reply)
end

return M
