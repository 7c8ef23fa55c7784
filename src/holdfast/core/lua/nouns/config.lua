-- config: settings as stored, with defaults: the protocol's, and ours in roots of our own. What the hot path
-- needs is copied into the root and into the queue's control record.
local late = require("base.late")
local keys = require("base.keys")
local queues = require("nouns.queue")
local root = require("base.root")
local text = require("base.text")
local M = {}

local DEFAULTS = {
  ["grace-period"] = "10", ["heartbeat"] = "60", ["jobs-history"] = "604800",
  ["jobs-history-count"] = "50000", ["max-job-history"] = "100", ["max-pop-retry"] = "1",
  ["max-worker-age"] = "86400",
}
local OURS = { ["grace-period"] = "5", ["heartbeat"] = "30" } -- those of them that differ
-- Settings that the root carries: its field, and the factor to ms.
local IN_ROOT = {
  ["grace-period"] = { "grace", 1000 }, ["heartbeat"] = { "heartbeat", 1000 },
  ["jobs-history"] = { "history_age", 1000 }, ["jobs-history-count"] = { "history_count", 1 },
}

local APPLICATION = "application" -- what people see; each door has its own default

local call
late.bind(function() call = redis.call end)

local function default(at, key) return not at.keys.is_shared and OURS[key] or DEFAULTS[key] end

-- `defaults` in the next two: those that are shown, where a door shows its own.
function M.get(at, key, defaults)
  return call("HGET", at.keys.config, key) or defaults and defaults[key] or not defaults and default(at, key) or
    key == APPLICATION and at.application
end

-- A setting that has a default, as a number: a text that is none counts as not set.
function M.number(at, key)
  return text.number(call("HGET", at.keys.config, key)) or tonumber(default(at, key))
end

-- The same, where a queue may have a setting of its own.
function M.of_queue(at, name, key)
  local found = call("HMGET", at.keys.config, name .. "-" .. key, key)
  return text.number(found[1]) or text.number(found[2]) or tonumber(default(at, key))
end

-- All settings, as (key, value) pairs.
function M.all(at, defaults)
  local stored, pairs_, seen = call("HGETALL", at.keys.config), {}, {}
  for i = 1, #stored, 2 do
    seen[stored[i]] = true
    pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = stored[i], stored[i + 1]
  end
  for key, value in pairs(defaults or DEFAULTS) do
    if not seen[key] then pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = key, defaults and value or default(at, key) end
  end
  if not seen[APPLICATION] then pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = APPLICATION, at.application end
  return pairs_
end

-- Copies a value to where the hot path looks. A text that is no number counts
-- as not set.
local function spread(at, key, value)
  local place = IN_ROOT[key]
  if place then
    local number = text.number(value) or tonumber(default(at, key))
    return root.set(at.keys.root, place[1], number * place[2])
  end
  local name = key:match("^(.+)%-heartbeat$")
  if name then
    local seconds = text.number(value)
    queues.set_heartbeat(keys.of_queue(at, name), seconds and seconds * 1000 or queues.NEVER)
  end
end

function M.set(at, key, value)
  call("HSET", at.keys.config, key, value)
  spread(at, key, value)
end

function M.unset(at, key)
  local was = call("HDEL", at.keys.config, key)
  spread(at, key, default(at, key))
  return was
end

return M
