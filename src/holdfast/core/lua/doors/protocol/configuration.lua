-- configuration: configuration, throttles and pausing.
local keys = require("base.keys")
local job_text = require("doors.protocol.job_text")
local arguments = require("doors.protocol.arguments")
local config = require("nouns.setting.config")
local configure = require("verbs.configure")
local pause = require("verbs.pause")
local M = {}

M["config.get"] = function(ctx, args)
  return config.get(ctx, arguments.text(args, 3, "config.get(): Argument 'key' missing"), ctx.dialect.defaults)
end

M["config.getAll"] = function(ctx)
  return job_text.object(config.all(ctx, ctx.dialect.defaults))
end

M["config.set"] = function(ctx, args)
  local key = arguments.text(args, 3, 'config.set(): Arg "option" missing')
  configure.set(ctx, key, arguments.text(args, 4, 'config.set(): Arg "value" missing'))
end

M["config.unset"] = function(ctx, args)
  configure.unset(ctx, arguments.text(args, 3, 'config.unset(): Arg "option" missing'))
end

-- `seconds` of 0: the end stays unchanged.
local function set(ctx, id, args, seconds)
  local maximum = arguments.text(args, 4, "Throttle(): no maximum provided")
  arguments.number(args, 4, "Throttle(): the maximum is not a number")
  ctx.throttles.set(ctx, id, maximum, seconds * 1000)
end

M["throttle.set"] = function(ctx, args)
  local id = arguments.text(args, 3, arguments.NO_ID)
  local seconds = arguments.whole(args, 5, 0, "Throttle(): the expiration is not a whole number")
  set(ctx, id, args, seconds > 0 and seconds or 0)
end

M["queue.throttle.set"] = function(ctx, args)
  set(ctx, keys.of_queue(ctx, arguments.text(args, 3, arguments.NO_QUEUE)).own, args, 0)
end

M["throttle.delete"] = function(ctx, args) ctx.throttles.delete(ctx, arguments.text(args, 3, arguments.NO_ID)) end

M["throttle.release"] = function(ctx, args)
  local id = arguments.text(args, 3, arguments.NO_ID)
  for i = 4, #args do ctx.throttles.release_one(ctx, id, args[i]) end
end

-- A throttle as it is defined, with what is left of its time.
local function throttle_text(ctx, id)
  local most, left = ctx.throttles.definition(ctx, id)
  local text = '{"id":' .. encode(id) .. ',"maximum":' .. job_text.number(most)
  if ctx.dialect.asks_ttl_apart then return text .. "}" end
  return text .. ',"ttl":' .. left .. "}"
end

M["throttle.get"] = function(ctx, args) return throttle_text(ctx, arguments.text(args, 3, arguments.NO_ID)) end

M["throttle.locks"] = function(ctx, args)
  return job_text.jids(ctx, call("ZRANGE", ctx.throttles.sets(ctx, arguments.text(args, 3, arguments.NO_ID)), 0, -1))
end

M["throttle.pending"] = function(ctx, args)
  return job_text.jids(ctx, call("ZRANGE", ctx.keys.pending .. arguments.text(args, 3, arguments.NO_ID), 0, -1))
end

M["queue.throttle.get"] = function(ctx, args)
  return throttle_text(ctx, keys.of_queue(ctx, arguments.text(args, 3, arguments.NO_QUEUE)).own)
end

local function paused(ctx, args, on)
  arguments.text(args, 3, arguments.NO_QUEUE)
  pause.run(ctx, on, "", "", 0, args, 3, #args)
end

M["queue.pause"] = function(ctx, args) paused(ctx, args, true) end
M["queue.unpause"] = function(ctx, args) paused(ctx, args, false) end

return M
