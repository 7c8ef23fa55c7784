-- audit: who did what to what, the newest ten thousand lines or a few more.
local event = require("nouns.event.event")
local M = {}

local MOST = 10000

-- When a line was written, by its id.
local function moment(id) return tonumber(match(id, "^%d+")) end

-- The newest line, or nil.
function M.newest(ctx) return call("XREVRANGE", ctx.keys.audit, "+", "-", "COUNT", 1)[1] end

-- Appends a line. Returns its id, which has its time; ids only grow, whatever the
-- store's clock does.
function M.add(ctx, who, what, target, detail)
  local newest, now = M.newest(ctx), ctx.now
  if newest and moment(newest[1]) > now then now = moment(newest[1]) end
  event.changed(ctx, "audit")
  return call("XADD", ctx.keys.audit, "MAXLEN", "~", MOST, format("%.0f-*", now),
    "who", who, "what", what, "target", target, "detail", detail)
end

-- Rows {id, when, who, what, target, detail}, newest first, of the lines before `before`
-- ("" for the newest of all).
function M.list(ctx, before, count)
  if count == 0 then return {} end
  local from = before == "" and "+" or "(" .. before
  local lines, rows = call("XREVRANGE", ctx.keys.audit, from, "-", "COUNT", count), {}
  for i = 1, #lines do
    local id, fields = lines[i][1], lines[i][2]
    rows[i] = { id, moment(id), fields[2], fields[4], fields[6], fields[8] }
  end
  return rows
end

return M
