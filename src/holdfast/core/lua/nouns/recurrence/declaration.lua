-- declaration: that code declares a template, in which module, and in which version of the program.
--
-- Workers put what their code declares at their start. The sorted set `r` has these templates by when that was last.
-- One that its module does not declare any more is marked, and puts jobs until somebody deletes it.
local audit = require("nouns.operation.audit")
local options = require("nouns.job.options")
local M = {}

local MODULE, VERSION, BY, VANISHED = "module", "app-version", "declared-by", "vanished"
local WORDS = { "queue", "klass", "data", "priority", "retries" }
local OF_CALENDAR = { "cron", "zone", "missed", "jitter", "start", "end" }

local function sorted(t)
  local words = {}
  for _, list in ipairs({ t.tags, options.pairs(t.options) }) do
    local some = {}
    for i = 1, #list do some[i] = tostring(list[i]) end
    table.sort(some)
    words[#words + 1] = table.concat(some, "\n")
  end
  return table.concat(words, "\n\n")
end

-- What differs between two templates, as names for people. The interval of a calendar is computed.
local function changes(old, t)
  local found, one, other = {}, old.calendar or {}, t.calendar or {}
  for _, name in ipairs(WORDS) do
    if old[name] ~= t[name] then found[#found + 1] = name end
  end
  for _, name in ipairs(OF_CALENDAR) do
    if one[name] ~= other[name] then found[#found + 1] = name end
  end
  if not t.calendar and (old.interval ~= t.interval or old.backlog ~= t.backlog) then
    found[#found + 1] = "interval"
  end
  if (old.overlap or "allow") ~= (t.overlap or "allow") then found[#found + 1] = "overlap" end
  if sorted(old) ~= sorted(t) then found[#found + 1] = "options" end
  return table.concat(found, " ")
end

-- Notes in the audit log that a declaration has changed. `declared`: module, version, by (the worker).
function M.note_change(ctx, jid, old, t, declared)
  local what = changes(old, t)
  if what == "" then return end
  local version = declared.version ~= "" and " " .. declared.version or ""
  audit.add(ctx, declared.by, "declare recurring", jid, what .. ", by " .. declared.module .. version)
end

-- Code declares a template, or (nil) a program puts it.
function M.write(ctx, jid, declared)
  local key = ctx.keys.template .. jid
  if not declared then return M.forget(ctx, jid) end
  call("HSET", key, MODULE, declared.module, VERSION, declared.version, BY, declared.by)
  call("HDEL", key, VANISHED)
  call("ZADD", ctx.keys.declared, ctx.now, jid)
end

-- Its module does not declare it any more. Returns whether that is new.
function M.vanish(ctx, jid)
  if not call("ZSCORE", ctx.keys.declared, jid) then return false end
  return call("HSETNX", ctx.keys.template .. jid, VANISHED, ctx.now) == 1
end

-- (name, text) pairs: module, version, by, declared (when a worker put it last, ms), vanished (since when, ms; 0: it
-- has not). None for a template that no code declares.
function M.pairs(ctx, jid)
  local found = call("HMGET", ctx.keys.template .. jid, MODULE, VERSION, VANISHED, BY)
  if not found[1] then return {} end
  local last = call("ZSCORE", ctx.keys.declared, jid) or "0"
  return {
    "module", found[1], "version", found[2] or "", "by", found[4] or "", "declared", last, "vanished", found[3] or "0",
  }
end

-- No code declares it. Roots that programs of other languages share have no declarations.
function M.forget(ctx, jid)
  if not ctx.keys.declared or call("ZREM", ctx.keys.declared, jid) == 0 then return end
  call("HDEL", ctx.keys.template .. jid, MODULE, VERSION, VANISHED, BY)
end

return M
