-- advance: job.completeAndRequeue.
local held_job = require("doors.protocol.held_job")
local arguments = require("doors.protocol.arguments")
local circle = require("nouns.circle")
local state = require("nouns.state")
local complete = require("verbs.complete")
local complete_x = require("verbs.complete_x")
local M = {}

local NONE = {}
local FIRST = 7 -- the argument behind `jid worker queue data`

-- The next queue, and the delay and parents in the pairs behind it; nil: it ends here. A name
-- without a value is left out. Two released clients send the word `next` before the queue:
-- then there is an even number of words.
local function next_place(args)
  local first = args[FIRST] == "next" and #args % 2 == 0 and FIRST + 1 or FIRST
  if not args[first] then return nil end
  local how = { next_queue = args[first], delay = 0, parents = NONE }
  for i = first + 1, #args - 1, 2 do
    if args[i] == "delay" then
      how.delay = arguments.number(args, i + 1, 'Complete(): Arg "delay" not a number') * 1000
    elseif args[i] == "depends" then
      how.parents = arguments.names(args[i + 1], "depends")
    end
  end
  return how
end

-- job.completeAndRequeue jid worker queue data next_queue [key value]...
M["job.completeAndRequeue"] = function(ctx, args)
  local jid, worker, queue, data = held_job.completing(args)
  local how = next_place(args)
  local r = held_job.to_complete(ctx, jid, worker, queue)
  if not how then
    complete.one(ctx, jid, r, data)
    return state.NAME[state.COMPLETE]
  end
  local refused = circle.refusal(ctx, {}, jid, r, how.parents)
  if refused then arguments.refuse_code("Complete", refused) end
  how.data = data
  return complete_x.continue(ctx, jid, r, how, NONE)
end

return M
