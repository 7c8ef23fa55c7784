-- older: commands of qless that are another today, or one of several: (at, args) as there.
local keys = require("base.keys")
local commands = require("doors.protocol.commands")
local pop = require("doors.protocol.pop")
local lifecycle = require("doors.protocol.lifecycle")
local arguments = require("doors.protocol.arguments")
local M = {}

-- What may still run in a queue besides what runs, where there is a limit.
local function places(ctx, name)
  local most = tonumber(call("HGET", ctx.keys.config, name .. "-max-concurrency") or nil) or 0
  if most <= 0 then return 1 / 0 end
  local running = call("ZCOUNT", keys.of_queue(ctx, name).leases, "(" .. ctx.now, "+inf")
  return most > running and most - running or 0
end

function M.pop(ctx, args)
  local want = arguments.finite(args[5])
  if args[4] and want then args[5] = math.min(want, places(ctx, args[3])) end
  return pop["queue.pop"](ctx, args)
end

-- peek queue [offset] count: released clients of one kind give no offset.
function M.peek(ctx, args)
  if args[4] and not args[5] then args = { "", "", args[3], 0, args[4] } end
  return pop["queue.peek"](ctx, args)
end

-- The same job continues in another queue.
local function requeue(ctx, args, found)
  local others = { "", "", args[3], args[4], args[5], args[6], found.next }
  for _, key in ipairs({ "delay", "depends" }) do
    if found[key] then others[#others + 1], others[#others + 2] = key, found[key] end
  end
  return commands.find("job.completeAndRequeue")(ctx, others)
end

-- complete jid worker queue data [next queue [delay seconds] [depends jids]]; a word
-- without its value is none.
function M.complete(ctx, args)
  local found = {}
  for i = 7, #args, 2 do found[args[i]] = args[i + 1] end
  if found.next then return requeue(ctx, args, found) end
  local without = found.delay and "delay" or found.depends and "depends"
  if without then arguments.refuse('Complete(): "' .. without .. '" cannot be used without a "next"') end
  return lifecycle["job.complete"](ctx, args)
end

-- recur queue jid klass data interval seconds offset [key value]...: one word more, the
-- kind of the schedule, of which there is one.
function M.recur(ctx, args)
  if args[6] then
    local kind = arguments.text(args, 7, 'Recur(): Arg "spec" missing')
    if kind ~= "interval" then arguments.refuse('Recur(): schedule type "' .. kind .. '" unknown') end
    remove(args, 7)
  end
  return commands.find("queue.recurAtInterval")(ctx, args)
end

-- A command that one word chooses: without that word it is a command of today.
local function run(ctx, args, place, named, refusal)
  local today = named[remove(args, place)] or arguments.refuse(refusal)
  return commands.find(today)(ctx, args)
end

-- track [track|untrack jid]
function M.track(ctx, args)
  if not args[3] then return commands.find("jobs.tracked")(ctx, args) end
  arguments.text(args, 4, 'Track(): Arg "jid" missing')
  return run(ctx, args, 3, { track = "job.track", untrack = "job.untrack" },
    'Track(): Unknown action "' .. args[3] .. '"')
end

-- tag add|remove jid tag..., tag get tag [offset] [count], tag top [offset] [count]
function M.tag(ctx, args)
  arguments.text(args, 3, 'Tag(): Arg "command" must be "add", "remove", "get" or "top"')
  return run(ctx, args, 3, { add = "job.addTag", remove = "job.removeTag", get = "jobs.tagged", top = "tags.top" },
    'Tag(): First argument must be "add", "remove", "get" or "top"')
end

-- depends jid on|off jid..., depends jid off all
function M.depends(ctx, args)
  arguments.text(args, 3, arguments.NO_JID)
  arguments.text(args, 4, 'Depends(): Arg "command" missing')
  return run(ctx, args, 4, { on = "job.addDependency", off = "job.removeDependency" },
    'Depends(): Argument "command" must be "on" or "off"')
end

-- unfail queue group [count]
function M.unfail(ctx, args)
  arguments.text(args, 3, arguments.NO_QUEUE)
  return commands.find("queue.unfail")(ctx, args)
end

-- config.get [key]
M["config.get"] = function(ctx, args)
  return commands.find(args[3] and "config.get" or "config.getAll")(ctx, args)
end

M["throttle.ttl"] = function(ctx, args)
  return call("TTL", ctx.keys.throttle .. arguments.text(args, 3, arguments.NO_ID))
end

return M
