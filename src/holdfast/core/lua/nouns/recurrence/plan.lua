-- plan: the next moments of a template that follows a calendar, which clients compute.
--
-- The list `L:<jid>` has (due, nominal) pairs, packed: when a job is put, and the moment of the calendar that it is
-- for. The score of the template in its queue's set is the first of them, which is taken off the list. The sorted set
-- `L` has all such templates by the last moment that is planned: those with little left are planned on by any worker.
-- A template without a moment left puts no jobs until then.
local bounds = require("base.bounds")
local text = require("base.text")
local M = {}

local ENTRY = "<dd"
local ENDLESS = 2 ^ 53 - 1
local LATEST = 2 * bounds.CENTURY -- ms: of a moment
local MOST = 1500 -- moments that are kept
local MOST_DUE = 20 * MOST -- moments looked at, where nobody took any for long: three weeks of each minute
local PIECE = 100 -- moments read and written at once

-- The moments in a text of whole numbers in ms, due and nominal in turns, each nominal one after the one before; nil if
-- it is none.
function M.read(given)
  local moments = {}
  for word in given:gmatch("%S+") do
    local ms, n = text.number(word), #moments
    if not ms or ms < 0 or ms > LATEST or ms % 1 ~= 0 then return nil end
    if n % 2 == 1 and n > 1 and ms <= moments[n - 1] then return nil end
    moments[n + 1] = ms
  end
  return #moments % 2 == 0 and #moments <= 2 * MOST and moments or nil
end

-- The next moment, which leaves the plan: due, nominal; nil if there is none.
function M.take(ctx, jid)
  local packed = call("LPOP", ctx.keys.plan .. jid)
  if not packed then return nil end
  return unpack_bytes(ENTRY, packed)
end

-- The moments of the plan that are due by now, as (due, nominal) pairs behind those in `moments`: all, or just enough
-- that there are more than `most`. The first is looked at alone: mostly it is not due.
function M.add_due(ctx, jid, moments, most)
  local at, piece = 0, 1
  while at <= MOST_DUE and #moments / 2 <= most do
    local entries = call("LRANGE", ctx.keys.plan .. jid, at, at + piece - 1)
    for i = 1, #entries do
      local due, nominal = unpack_bytes(ENTRY, entries[i])
      if due > ctx.now then return end
      moments[#moments + 1], moments[#moments + 2] = due, nominal
    end
    if #entries < piece then return end
    at, piece = at + piece, PIECE
  end
end

-- The first moments of the plan leave it.
function M.drop(ctx, jid, count)
  if count > 0 then call("LPOP", ctx.keys.plan .. jid, count) end
end

-- Adds moments from the one at `first` on.
local function append(ctx, jid, moments, first)
  local entries = {}
  for i = first, #moments, 2 do
    entries[#entries + 1] = pack(ENTRY, moments[i], moments[i + 1])
    if #entries == PIECE or i + 1 >= #moments then
      call("RPUSH", ctx.keys.plan .. jid, unpack_(entries))
      entries = {}
    end
  end
  if moments[#moments] then call("ZADD", ctx.keys.plans, moments[#moments], jid) end
end

-- Plans anew, with the moments from `since` on (of a clock that is ahead of all: with the last one). Returns the first,
-- which is no part of the list: due, nominal.
function M.set(ctx, jid, moments, since)
  local first = 1
  while moments[first] < since and moments[first + 2] do first = first + 2 end
  call("UNLINK", ctx.keys.plan .. jid)
  append(ctx, jid, moments, first + 2)
  return moments[first], moments[first + 1]
end

-- Plans on behind what is there.
function M.extend(ctx, jid, moments) append(ctx, jid, moments, 1) end

-- The last moment that is planned, nil for a template without a calendar.
function M.last(ctx, jid) return tonumber(call("ZSCORE", ctx.keys.plans, jid) or nil) end

-- Up to `count` templates of which no moment after `until_` is planned, behind the first `skip` of them.
function M.short(ctx, until_, count, skip)
  return call("ZRANGE", ctx.keys.plans, "-inf", until_, "BYSCORE", "LIMIT", skip, count)
end

-- No more moments will come: nobody has to look for them.
function M.finish(ctx, jid) call("ZADD", ctx.keys.plans, ENDLESS, jid) end

function M.forget(ctx, jid)
  call("UNLINK", ctx.keys.plan .. jid)
  call("ZREM", ctx.keys.plans, jid)
end

return M
