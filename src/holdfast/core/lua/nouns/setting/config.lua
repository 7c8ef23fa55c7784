-- config: settings as stored, with defaults: the protocol's, and ours in roots of our own. What the hot path
-- needs is copied into the root and into the queue's control record.
local keys = require("base.keys")
local queues = require("nouns.queue.queue")
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

local function default(ctx, key) return not ctx.keys.is_shared and OURS[key] or DEFAULTS[key] end

-- `defaults` in the next two: those that are shown, where a door shows its own.
function M.get(ctx, key, defaults)
  return call("HGET", ctx.keys.config, key) or defaults and defaults[key] or not defaults and default(ctx, key) or
    key == APPLICATION and ctx.application
end

-- A setting that has a default, as a number: a text that is none counts as not set.
function M.number(ctx, key)
  return text.number(call("HGET", ctx.keys.config, key)) or tonumber(default(ctx, key))
end

-- The same, where a queue may have a setting of its own.
function M.of_queue(ctx, name, key)
  local found = call("HMGET", ctx.keys.config, name .. "-" .. key, key)
  return text.number(found[1]) or text.number(found[2]) or tonumber(default(ctx, key))
end

-- All settings, as (key, value) pairs.
function M.all(ctx, defaults)
  local stored, pairs_, seen = call("HGETALL", ctx.keys.config), {}, {}
  for i = 1, #stored, 2 do
    seen[stored[i]] = true
    pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = stored[i], stored[i + 1]
  end
  for key, value in pairs(defaults or DEFAULTS) do
    if not seen[key] then pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = key, defaults and value or default(ctx, key) end
  end
  if not seen[APPLICATION] then pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = APPLICATION, ctx.application end
  return pairs_
end

-- Copies a value to where the hot path reads it. A text that is not a number counts
-- as not set.
local function spread(ctx, key, value)
  local place = IN_ROOT[key]
  if place then
    local number = text.number(value) or tonumber(default(ctx, key))
    return root.set(ctx.keys.root, place[1], number * place[2])
  end
  local name = key:match("^(.+)%-heartbeat$")
  if name then
    local seconds = text.number(value)
    queues.set_heartbeat(keys.of_queue(ctx, name), seconds and seconds * 1000 or queues.NEVER)
  end
end

function M.set(ctx, key, value)
  call("HSET", ctx.keys.config, key, value)
  spread(ctx, key, value)
end

function M.unset(ctx, key)
  local was = call("HDEL", ctx.keys.config, key)
  spread(ctx, key, default(ctx, key))
  return was
end

return M
