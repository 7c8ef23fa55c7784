-- queue_scan: all known queues are looked through once a minute, some of them in each call of a worker of many queues.
--
-- What the index misses is entered, which heals a root that an earlier release filled. A queue that was not used
-- for a long time and has neither jobs nor settings leaves the list of known ones; its statistics stay as long as
-- they would have, and continue when it is used again.
local keys = require("base.keys")
local root = require("base.root")
local removal = require("nouns.queue.queue_removal")
local settings = require("nouns.setting.settings")
local M = {}

local PIECE = 1000 -- queues looked at in one call
local PAUSE, BETWEEN = 1000, 60000 -- ms between two calls of a round, and between two rounds
local UNUSED, MOST_FORGOTTEN = 30, 4 -- days; queues forgotten in one call
local NEVER = 1 / 0

local function keys_of(ctx, field, names)
  local found = {}
  for i = 1, #names do found[i] = keys.key_of(ctx, field, names[i]) end
  return found
end

-- Enters a queue where it is missing. Returns whether it has neither ready jobs nor timers nor settings.
local function compare(ctx, name, waiting, control)
  local due = control and unpack_bytes("<d", control) or NEVER
  if due < NEVER and not ctx.index.timer_of(ctx, name) then ctx.index.due(ctx, keys.of_queue(ctx, name), due) end
  if call("EXISTS", waiting) == 0 then return not control end
  ctx.index.again(ctx, keys.of_queue(ctx, name))
  return false
end

-- For how many days nothing was put, popped or completed there.
local function days_unused(ctx, name, first_used)
  local day = call("HGET", keys.key_of(ctx, "tallies", name), "day")
  return floor(ctx.now / root.DAY) - floor(tonumber(day or nil) or first_used / root.DAY)
end

local function is_left(queue)
  return call("EXISTS", queue.leases, queue.scheduled, queue.recurring, queue.depends, queue.throttled, queue.failed,
    queue.options) == 0
end

-- Looks at a page of (name, when it was first used).
local function look_at(ctx, page)
  local names, left = {}, MOST_FORGOTTEN
  for i = 1, #page, 2 do names[#names + 1] = page[i] end
  local controls, waiting = call("MGET", unpack_(keys_of(ctx, "control", names))), keys_of(ctx, "waiting", names)
  for i = 1, #names do
    if compare(ctx, names[i], waiting[i], controls[i]) and left > 0 then
      local days = days_unused(ctx, names[i], tonumber(page[2 * i]))
      local queue = days >= UNUSED and keys.of_queue(ctx, names[i])
      if queue and is_left(queue) then
        removal.retire(ctx, queue, max(1, settings.number(ctx, settings.STATS_DAYS) - days) * root.DAY / 1000)
        left = left - 1
      end
    end
  end
end

-- In a root that release 0.1 filled, queues that were first used in the same millisecond share a score: those of the
-- last score are looked at together, for the next page begins behind it. Returns that score.
local function complete(ctx, page)
  local last, n = page[#page], #page
  while n > 0 and page[n] == last do
    page[n], page[n - 1], n = nil, nil, n - 2
  end
  local same = call("ZRANGE", ctx.keys.queues, last, last, "BYSCORE", "LIMIT", 0, 4 * PIECE)
  for i = 1, #same do page[n + 1], page[n + 2], n = same[i], last, n + 2 end
  return last
end

-- Continues the round, unless it is too early. Returns whether all queues were looked at once, and the ms until the
-- caller is to come again, nil if it need not.
function M.continue(ctx)
  local found = call("HMGET", ctx.keys.root, "round-at", "round-from", "round-done")
  local is_done = found[3] and true or false
  if (tonumber(found[1] or nil) or 0) > ctx.now then return is_done, nil end
  local page = call("ZRANGE", ctx.keys.queues, "(" .. (found[2] or "-1"), "+inf", "BYSCORE", "LIMIT", 0, PIECE,
    "WITHSCORES")
  if #page == 2 * PIECE then
    local last = complete(ctx, page)
    look_at(ctx, page)
    local pause = is_done and PAUSE or 0
    call("HSET", ctx.keys.root, "round-at", ctx.now + pause, "round-from", last)
    return is_done, pause
  end
  if page[1] then look_at(ctx, page) end
  call("HSET", ctx.keys.root, "round-at", ctx.now + BETWEEN, "round-from", "-1", "round-done", 1)
  return true, nil
end

return M
