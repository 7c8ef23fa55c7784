-- older: commands of qless that are another today, or several: (at, args) as there.
local late = require("base.late")
local keys = require("base.keys")
local popping = require("doors.protocol.popping")
local recurring = require("doors.protocol.recurring")
local setting = require("doors.protocol.setting")
local settling = require("doors.protocol.settling")
local words = require("doors.protocol.words")
local M = {}

local call, remove
late.bind(function() call, remove = redis.call, table.remove end)

-- What may still run in a queue besides what runs, where somebody set a limit.
local function places(at, name)
  local most = tonumber(call("HGET", at.keys.config, name .. "-max-concurrency") or nil) or 0
  if most <= 0 then return 1 / 0 end
  local running = call("ZCOUNT", keys.of_queue(at, name).leases, "(" .. at.now, "+inf")
  return most > running and most - running or 0
end

function M.pop(at, args)
  local want = words.finite(args[5])
  if args[4] and want then args[5] = math.min(want, places(at, args[3])) end
  return popping["queue.pop"](at, args)
end

-- peek queue [offset] count: released clients of one kind give no offset.
function M.peek(at, args)
  if args[4] and not args[5] then return popping["queue.peek"](at, { "", "", args[3], 0, args[4] }) end
  return popping["queue.peek"](at, args)
end

-- complete jid worker queue data [next queue] [delay seconds] [depends jids]
function M.complete(at, args)
  if args[7] then words.refuse("next is not served yet") end
  return settling["job.complete"](at, args)
end

-- recur queue jid klass data interval seconds offset [key value]...: one word more, the
-- kind of the schedule, of which there is one.
function M.recur(at, args)
  if args[6] then
    local kind = words.text(args, 7, 'Recur(): Arg "spec" missing')
    if kind ~= "interval" then words.refuse('Recur(): schedule type "' .. kind .. '" unknown') end
    remove(args, 7)
  end
  return recurring["queue.recurAtInterval"](at, args)
end

-- track [track|untrack jid]
function M.track(at, args)
  local action = words.text(args, 3, "jobs.tracked are not served yet")
  words.text(args, 4, 'Track(): Arg "jid" missing')
  if action ~= "track" and action ~= "untrack" then words.refuse('Track(): Unknown action "' .. action .. '"') end
  remove(args, 3)
  return setting["job." .. action](at, args)
end

M["config.get"] = function(at, args)
  return setting[args[3] and "config.get" or "config.getAll"](at, args)
end

M["throttle.ttl"] = function(at, args)
  return call("TTL", at.keys.throttle .. words.text(args, 3, words.NO_ID))
end

return M
