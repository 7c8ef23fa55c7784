-- configure: settings, limits, and the sweep of what is too old.
local late = require("base.late")
local refuse = require("base.refuse")
local config = require("nouns.config")
local queues = require("nouns.queue")
local retention = require("nouns.retention")
local throttle = require("nouns.throttle")
local M = {}

local call
late.bind(function() call = redis.call end)

-- (key, value or false) of the settings named, of all if none is.
function M.get(at, args, first, last)
  if last < first then return config.all(at) end
  local pairs_ = {}
  for i = first, last do
    pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = args[i], config.get(at, args[i])
  end
  return pairs_
end

function M.set(at, key, value)
  config.set(at, key, value)
  return 1
end

function M.unset(at, key) return config.unset(at, key) end

local function own(at, id)
  local queue = throttle.queue_of(at, id)
  if not queue then refuse.call("THROTTLE_NOT_FOUND", id .. " is not a queue's own throttle, ql:q:<queue>") end
  return queue
end

-- Sets how many jobs of a queue may run at once; 0 takes the limit away.
function M.throttle(at, id, maximum)
  throttle.set(at, own(at, id), maximum)
  return 1
end

-- [maximum, used, pending]
function M.throttle_state(at, id)
  local queue = own(at, id)
  local _, _, limit = queues.control(queue)
  return { limit, call("ZCARD", queue.leases), call("ZCARD", queue.throttled) }
end

function M.sweep(at) return retention.sweep(at) end

return M
