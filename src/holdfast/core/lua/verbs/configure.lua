-- configure: settings, and the sweep of what is too old.
local config = require("nouns.config")
local event = require("nouns.event")
local retention = require("nouns.retention")
local workers = require("nouns.worker")
local watch = require("verbs.watch")
local M = {}

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
  if at.events.config_set then at.events.config_set(at, key, value) end
  event.changed(at, "config")
  return 1
end

function M.unset(at, key)
  local was = config.unset(at, key)
  if at.events.config_unset then at.events.config_unset(at, key) end
  event.changed(at, "config")
  return was
end

-- Returns how many completed jobs were too old.
function M.sweep(at)
  watch.lower(at)
  workers.sweep(at)
  if at.ended then at.ended.sweep(at) end
  return retention.sweep(at)
end

return M
