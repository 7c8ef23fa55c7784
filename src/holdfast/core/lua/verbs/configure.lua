-- configure: settings, and the sweep of what is too old.
local config = require("nouns.setting.config")
local event = require("nouns.event.event")
local retention = require("nouns.job.retention")
local flows = require("nouns.flow.flow")
local members = require("nouns.flow.members")
local ending = require("nouns.job.ending")
local unique = require("nouns.job.unique")
local workers = require("nouns.lease.worker")
local watch = require("verbs.watch")
local M = {}

-- (key, value or false) of the settings named, of all if none is.
function M.get(ctx, args, first, last)
  if last < first then return config.all(ctx) end
  local pairs_ = {}
  for i = first, last do
    pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = args[i], config.get(ctx, args[i])
  end
  return pairs_
end

function M.set(ctx, key, value)
  config.set(ctx, key, value)
  if ctx.events.config_set then ctx.events.config_set(ctx, key, value) end
  event.changed(ctx, "config")
  return 1
end

function M.unset(ctx, key)
  local was = config.unset(ctx, key)
  if ctx.events.config_unset then ctx.events.config_unset(ctx, key) end
  event.changed(ctx, "config")
  return was
end

-- The value of a setting as text, "" for one without.
function M.value(ctx, key) return config.get(ctx, key) or "" end

local LATELY = 100 -- flows that a sweep looks at

-- A call that was cut off by a broken key may have been the one that ends the job of a large group.
local function settle_groups(ctx)
  for _, flow in ipairs(flows.newest(ctx, LATELY)) do
    local group = members.read(ctx, flow)
    if group and not group.has_ended then ending.settle_group(ctx, group) end
  end
end

-- Returns how many completed jobs were too old, and keys of jobs that are gone.
function M.sweep(ctx)
  watch.lower(ctx)
  workers.sweep(ctx)
  if ctx.cancelled then ctx.cancelled.sweep(ctx) end
  if ctx.keys.flows then
    flows.sweep(ctx)
    settle_groups(ctx)
  end
  return retention.sweep(ctx) + (ctx.keys.unique and unique.sweep(ctx) or 0)
end

return M
