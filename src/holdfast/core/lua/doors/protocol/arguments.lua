-- arguments: the arguments of that protocol, and its refusals.
--
-- A refusal is an error text: clients look for parts of it, and the store puts the
-- place in the script before it, which some of them look for too.
local base_text = require("base.text")
local M = {}

local MOST = 1e13

local mark, level, has_refused = "", 2, false
function M.refuse(text)
  has_refused = true
  error(mark .. text, level)
end

-- Whether a call that failed was refused; for scripts, which forget it with each call.
function M.refused() return has_refused end

-- In a library no place is named, and a refusal is known by its first word.
function M.in_library() mark, level = "HF_REFUSED ", 0 end

-- How a refusal begins that speaks of one job.
function M.of_job(ctx, who, jid) return who .. (ctx.dialect.names_jid and "(): Job " .. jid .. " " or "(): Job ") end

-- A word that has to be there, empty or not.
function M.text(args, i, refusal)
  return args[i] or M.refuse(refusal)
end

local finite = base_text.number

-- A number that has to be there.
function M.number(args, i, refusal) return finite(args[i]) or M.refuse(refusal) end

-- A number that may be left out from the right.
function M.number_or(args, i, default, refusal)
  if args[i] == nil then return default end
  return finite(args[i]) or M.refuse(refusal)
end

M.finite = finite

-- A whole number that may be left out from the right (default nil: it has to be there), no
-- larger than the store writes without an exponent.
function M.whole(args, i, default, refusal)
  local value = args[i] == nil and default or finite(args[i])
  if not value or value % 1 ~= 0 or value >= MOST or value <= -MOST then M.refuse(refusal) end
  return value
end

-- The pairs from args[first] on; the last of a name wins.
function M.pairs(args, first, refusal)
  if (#args - first) % 2 == 0 then M.refuse(refusal) end
  local found = {}
  for i = first, #args, 2 do found[args[i]] = args[i + 1] end
  return found
end

local function decoded(text, refusal)
  local ok, value = pcall(decode, text)
  if ok then return value end
  M.refuse(("%s (%s)"):format(refusal, value))
end

-- Data is JSON, and not the text `false`, and kept as it came.
function M.data(args, i, refusal)
  local ok, value = pcall(decode, args[i])
  if ok and value ~= false then return args[i] end
  M.refuse(ok and refusal or ("%s (%s)"):format(refusal, value))
end

-- The text of a JSON object.
function M.object(text, refusal)
  if type(decoded(text, refusal)) ~= "table" or not find(text, "^%s*{") then M.refuse(refusal) end
  return text
end

-- A JSON list of texts or numbers. Who writes an empty one as `{}`, as this protocol does,
-- means the same.
function M.list(text, what)
  local list = decoded(text, what .. " is not a JSON list")
  if type(list) ~= "table" or next(list) and not find(text, "^%s*%[") then M.refuse(what .. " is not a JSON list") end
  for i = 1, #list do
    local kind = type(list[i])
    if kind ~= "string" and kind ~= "number" then M.refuse(what .. " holds what is neither text nor number") end
  end
  return list
end

-- The same, of names: a number is its text.
function M.names(text, what)
  local list = M.list(text, what)
  for i = 1, #list do list[i] = tostring(list[i]) end
  return list
end

-- Offset and limit of a page, 0 and 25 unless given.
function M.page(ctx, args, i, who)
  return M.whole(args, i, 0, who .. '(): Arg "offset" not a number'),
    M.whole(args, i + 1, 25, who .. '(): Arg "' .. ctx.dialect.limit .. '" not a number')
end

-- Refuses what a verb refused, without the code that it gave.
function M.refuse_code(who, code) M.refuse(who .. "(): " .. gsub(code, "^HF_[A-Z_]+ ", "")) end

M.NO_JID, M.NO_QUEUE, M.NO_ID = "no jid provided", "no queue name provided", "no tid provided"

return M
