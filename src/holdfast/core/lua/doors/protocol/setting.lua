-- setting: configuration, throttles and pausing.
local late = require("base.late")
local keys = require("base.keys")
local job_text = require("doors.protocol.job_text")
local words = require("doors.protocol.words")
local config = require("nouns.config")
local configure = require("verbs.configure")
local pause = require("verbs.pause")
local M = {}

local call, encode
late.bind(function() call, encode = redis.call, cjson.encode end)

M["config.get"] = function(at, args)
  return config.get(at, words.text(args, 3, "config.get(): Argument 'key' missing"), at.accent.defaults)
end

M["config.getAll"] = function(at)
  return job_text.object(config.all(at, at.accent.defaults))
end

M["config.set"] = function(at, args)
  local key = words.text(args, 3, 'config.set(): Arg "option" missing')
  configure.set(at, key, words.text(args, 4, 'config.set(): Arg "value" missing'))
end

M["config.unset"] = function(at, args)
  configure.unset(at, words.text(args, 3, 'config.unset(): Arg "option" missing'))
end

-- `seconds` of 0: for as long as before.
local function set(at, id, args, seconds)
  local maximum = words.text(args, 4, "Throttle(): no maximum provided")
  words.number(args, 4, "Throttle(): the maximum is not a number")
  at.throttles.set(at, id, maximum, seconds * 1000)
end

M["throttle.set"] = function(at, args)
  local id = words.text(args, 3, words.NO_ID)
  local seconds = words.whole(args, 5, 0, "Throttle(): the expiration is not a whole number")
  set(at, id, args, seconds > 0 and seconds or 0)
end

M["queue.throttle.set"] = function(at, args)
  set(at, keys.of_queue(at, words.text(args, 3, words.NO_QUEUE)).own, args, 0)
end

M["throttle.delete"] = function(at, args) at.throttles.delete(at, words.text(args, 3, words.NO_ID)) end

M["throttle.release"] = function(at, args)
  local id = words.text(args, 3, words.NO_ID)
  for i = 4, #args do at.throttles.release_one(at, id, args[i]) end
end

-- A throttle as its definition says, with what is left of its time.
local function throttle_text(at, id)
  local most, left = at.throttles.definition(at, id)
  local text = '{"id":' .. encode(id) .. ',"maximum":' .. job_text.number(most)
  if at.accent.asks_ttl_apart then return text .. "}" end
  return text .. ',"ttl":' .. left .. "}"
end

M["throttle.get"] = function(at, args) return throttle_text(at, words.text(args, 3, words.NO_ID)) end

M["throttle.locks"] = function(at, args)
  return job_text.jids(at, call("ZRANGE", at.throttles.sets(at, words.text(args, 3, words.NO_ID)), 0, -1))
end

M["throttle.pending"] = function(at, args)
  return job_text.jids(at, call("ZRANGE", at.keys.pending .. words.text(args, 3, words.NO_ID), 0, -1))
end

M["queue.throttle.get"] = function(at, args)
  return throttle_text(at, keys.of_queue(at, words.text(args, 3, words.NO_QUEUE)).own)
end

local function paused(at, args, on)
  words.text(args, 3, words.NO_QUEUE)
  pause.run(at, on, "", "", 0, args, 3, #args)
end

M["queue.pause"] = function(at, args) paused(at, args, true) end
M["queue.unpause"] = function(at, args) paused(at, args, false) end

return M
