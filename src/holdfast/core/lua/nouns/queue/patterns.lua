-- patterns: rules that clients keep here, about which queues a worker serves and in what
-- order. The core looks at them only as far as the protocol demands: what is empty, and
-- whether the last rule is there.
local event = require("nouns.event.event")
local M = {}

local DEFAULT, ANY = "default", '["*"]'
local LAST = '{"fairly": false, "pattern": ["default"]}'

local function are_texts(list)
  if type(list) ~= "table" then return false end
  for i = 1, #list do
    if type(list[i]) ~= "string" then return false end
  end
  return true
end

-- How many patterns a JSON list has; nil for any other text.
function M.size(text)
  local ok, list = pcall(decode, text)
  if ok and find(text, "^%s*%[") and are_texts(list) then return #list end
end

-- Whether a JSON text is a rule of priority, and whether it is the one for all others.
function M.rule(text)
  local ok, rule = pcall(decode, text)
  if not ok or type(rule) ~= "table" or not are_texts(rule.pattern) then return false, false end
  return true, #rule.pattern == 1 and rule.pattern[1] == DEFAULT
end

-- (name, JSON list) pairs.
function M.identifiers(ctx)
  local k = ctx.keys
  local found = call("HGETALL", k.identifiers)
  if not found[1] and k.old_identifiers then found = call("HGETALL", k.old_identifiers) end
  for i = 1, #found, 2 do
    if found[i] == DEFAULT then return found end
  end
  found[#found + 1], found[#found + 2] = DEFAULT, ANY
  return found
end

-- JSON objects, in their order.
function M.priorities(ctx)
  local k = ctx.keys
  local found = call("LRANGE", k.priorities, 0, -1)
  if not found[1] and k.old_priorities then found = call("LRANGE", k.old_priorities, 0, -1) end
  if not found[1] then found[1] = LAST end
  return found
end

local function drop(ctx, key, old)
  call("UNLINK", key)
  if old then call("UNLINK", old) end
  event.changed(ctx, "config")
end

-- Replaces all by args[first … last], (name, JSON list) pairs that were looked at.
function M.set_identifiers(ctx, args, first, last)
  local kept, default = {}, ANY
  for i = first, last, 2 do
    if M.size(args[i + 1]) > 0 then
      if args[i] == DEFAULT then
        default = args[i + 1]
      else
        kept[#kept + 1], kept[#kept + 2] = args[i], args[i + 1]
      end
    end
  end
  drop(ctx, ctx.keys.identifiers, ctx.keys.old_identifiers)
  call("HSET", ctx.keys.identifiers, DEFAULT, default)
  for i = 1, #kept, 2 do call("HSET", ctx.keys.identifiers, kept[i], kept[i + 1]) end
end

-- Replaces all by args[first … last], rules that were looked at.
function M.set_priorities(ctx, args, first, last)
  local has_last = last < first
  for i = first, last do
    local _, is_last = M.rule(args[i])
    has_last = has_last or is_last
  end
  drop(ctx, ctx.keys.priorities, ctx.keys.old_priorities)
  for i = first, last do call("RPUSH", ctx.keys.priorities, args[i]) end
  if not has_last then call("RPUSH", ctx.keys.priorities, LAST) end
end

return M
