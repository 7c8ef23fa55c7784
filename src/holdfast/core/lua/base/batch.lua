-- batch: what holds for the many jobs of one call, and for the many entries of a set.
local bounds = require("base.bounds")
local M = {}

M.LIMIT = bounds.BATCH -- jobs of one native call
local SENT = 4000 -- values that one command takes from a list

-- Runs a command on a key with all values of a list, which may be a long one.
function M.send(command, key, values)
  local count = #values
  for i = 1, count, SENT do call(command, key, unpack_(values, i, min(count, i + SENT - 1))) end
end

-- Runs `one(jid, token, data)` for each such triple of args[first … last]. Returns
-- for how many it returned nothing, then (jid, code) of the others.
function M.settle(args, first, last, one)
  local reply, count = { 0 }, 0
  for i = first, last, 3 do
    local code = one(args[i], tonumber(args[i + 1]), args[i + 2])
    if code then
      reply[#reply + 1], reply[#reply + 2] = args[i], code
    else
      count = count + 1
    end
  end
  reply[1] = count
  return reply
end

-- Whether a text comes behind another as the store orders members: byte by byte. (`<`
-- goes by the language the store's machine is set to.)
local function is_behind(a, b)
  for i = 1, #a < #b and #a or #b do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- Where (score, member) is in a sorted set, or would be, as a rank; and 1 if it is there,
-- else 0. `score` is text, as the store gave it. Among equal scores it is searched by
-- halves, so a long run of them costs no more than a short one.
local function place(set, score, member)
  if tonumber(call("ZSCORE", set, member) or nil) == tonumber(score) then return call("ZRANK", set, member), 1 end
  local low, high = call("ZCOUNT", set, "-inf", "(" .. score), call("ZCOUNT", set, "-inf", score)
  while low < high do
    local middle = floor((low + high) / 2)
    if is_behind(call("ZRANGE", set, middle, middle)[1], member) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low, 0
end

-- One page of a sorted set: (member, score) pairs, at most `count`, of the ranks from
-- `first` up to but without `stop`. It begins behind (score, member), nil for the very
-- beginning; `down`: from the highest on, and "behind" is lower. Never by an offset: what
-- comes and goes in between moves no page.
function M.page(set, first, stop, score, member, count, down)
  if score then
    local rank, there = place(set, score, member)
    if down and rank < stop then stop = rank end
    if not down and rank + there > first then first = rank + there end
  end
  if down and stop - count > first then first = stop - count end
  if not down and first + count < stop then stop = first + count end
  if first >= stop then return {} end
  local found = call("ZRANGE", set, first, stop - 1, "WITHSCORES")
  if not down then return found end
  local turned, n = {}, #found
  for i = 1, n, 2 do turned[i], turned[i + 1] = found[n - i], found[n - i + 1] end
  return turned
end

return M
