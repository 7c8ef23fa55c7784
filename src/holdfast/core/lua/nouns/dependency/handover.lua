-- handover: what a job ended with becomes part of the data of the jobs that wait for it.
--
-- The data of such a job have a place for each of these: at `from` (a byte, from 0) stand `length` bytes that make room
-- for it. Until all its parents have ended, what came lies in `x:<jid>`, field `=<from>`: the length, a blank, the
-- text. Then the texts are joined: nothing of the data is parsed, so workers of any release and language need not
-- know of it.
local job = require("nouns.job.job")
local settings = require("nouns.setting.settings")
local M = {}

M.GROUP = "-ParentFailed" -- what the group of a job that fails for its parent ends with
local EMPTY = "null" -- what stands in a place until then
local KEPT = "=" -- what the field of a text begins with

local SKIPPED = "\0" -- what the result of a job begins with that skips what takes it; the reason follows

-- Why the job that ended with this skips what takes its result, or nil.
function M.skips(text) return text and sub(text, 1, 1) == SKIPPED and sub(text, 2) or nil end

-- The result of a job that skips what takes it.
function M.skipping(why) return SKIPPED .. why end

local function failure_of(ended)
  return format('{"group":%s,"message":%s}', encode(ended.group), encode(ended.message))
end

-- How the end of a parent looks to a job that runs whatever became of it: `ended` has result (nil: none), group and
-- message (nil: it did not fail).
function M.outcome(ended)
  if ended.group then
    return format('{"ok":false,"result":null,"failure":%s}', failure_of(ended))
  end
  local text = ended.result ~= "" and ended.result or "null"
  return format('{"ok":true,"result":%s,"failure":null}', text)
end

local LONGEST = 500 -- bytes of a message that are looked at, from its end
local FIRST = ", because " -- what stands in front of what the first job that did not complete was

-- Why a job fails whose parent did not complete, in one line: tracebacks end with what was raised. Where that failed
-- for its own parent, the first one is named that did not complete.
function M.reason(parent, ended)
  local line = match(sub(ended.message, -LONGEST), "([^\n]+)%s*$") or ""
  if sub(ended.group, -#M.GROUP) ~= M.GROUP then
    return format("%s did not complete: %s: %s", parent, ended.group, line)
  end
  local at = find(line, FIRST, 1, true)
  return format("%s did not complete%s%s", parent, FIRST, at and sub(line, at + #FIRST) or line)
end

-- Keeps what a parent ended with for a place of a job. Returns why not, or nil.
function M.keep(ctx, jid, edge, ended)
  if edge.from < 0 then return nil end
  local text = ended.result
  if edge.policy == "run" then text = M.outcome(ended) end
  if edge.policy == "rescue" then text = failure_of(ended) end
  if not text or text == "" then return "it has no result" end
  call("HSET", ctx.keys.extra .. jid, KEPT .. edge.from, edge.length .. " " .. text)
end

-- Whether something was kept for the place of an edge.
function M.is_kept(ctx, jid, edge)
  return edge.from >= 0 and call("HGET", ctx.keys.extra .. jid, KEPT .. edge.from) and true or false
end

-- The texts that were kept, by their places: (from, length, text) each, the first one first.
local function places(ctx, jid)
  local found, list = call("HGETALL", ctx.keys.extra .. jid), {}
  for i = 1, #found, 2 do
    if sub(found[i], 1, 1) == KEPT then
      local length, text = match(found[i + 1], "^(%d+) (.*)$")
      list[#list + 1] = { from = tonumber(sub(found[i], 2)), length = tonumber(length), text = text, name = found[i] }
    end
  end
  table.sort(list, function(one, other) return one.from < other.from end)
  return list
end

-- Puts the texts into the data of a job, as far as there are any. Returns why not, or nil. Write the record afterwards.
function M.put_in(ctx, jid, r)
  local list, body, pieces, at, names = places(ctx, jid), job.body(ctx, jid, r), {}, 1, {}
  if not list[1] then return nil end
  for i = 1, #list do
    local place = list[i]
    if sub(body, place.from + 1, place.from + place.length) ~= EMPTY then
      return "its data were changed while it waited, and have no place for results any more"
    end
    pieces[#pieces + 1] = sub(body, at, place.from)
    pieces[#pieces + 1] = place.text
    at, names[i] = place.from + place.length + 1, place.name
  end
  pieces[#pieces + 1] = sub(body, at)
  local whole, most = concat(pieces), settings.max_data(ctx)
  if #whole > most then
    return format("its data have %d bytes with the results of the jobs that it waited for, and max-data allows %d",
      #whole, most)
  end
  call("HDEL", ctx.keys.extra .. jid, unpack_(names))
  job.set_body(ctx, jid, r, whole)
end

-- What was kept for a job that ends as its parents do: the `one` text, or all of them as a `list`; nil and why not.
function M.all_kept(ctx, jid, kind)
  local list, texts, names, size, most = places(ctx, jid), {}, {}, 1, settings.max_data(ctx)
  for i = 1, #list do
    texts[i], names[i], size = list[i].text, list[i].name, size + #list[i].text + 1
  end
  if kind == "list" and size > most then
    return nil, format("the results of its flow have %d bytes as a list, and max-data allows %d", size, most)
  end
  if names[1] then call("HDEL", ctx.keys.extra .. jid, unpack_(names)) end
  if kind == "list" then return "[" .. concat(texts, ",") .. "]" end
  return texts[1] or "null"
end

-- `put_in` for a job that waited. Writes the record.
function M.join(ctx, jid)
  local r = job.read(ctx, jid)
  local problem = r and M.put_in(ctx, jid, r)
  if problem or not r then return problem end
  job.write(ctx, jid, r)
end

return M
