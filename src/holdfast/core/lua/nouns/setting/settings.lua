-- settings: what an installation can choose that the protocol's configuration has no key
-- for. They are fields of the root, so that a fresh configuration has its eight keys.
local root = require("base.root")
local M = {}

M.STATS_DAYS, M.KEEP_DATA, M.HISTORY_BYTES = "stats-days", "keep-data", "max-history-bytes"
M.UNKNOWN_FOR, M.MAX_QUEUES, M.MAX_DATA = "unknown-for", "max-queues", "max-data"
M.LEAST_DATA = 1024
-- By name: default, least, most. Days that statistics are kept; whether the data of an
-- earlier attempt are kept when they changed (the root's flag KEEPING holds it, too);
-- bytes of a job's history; seconds that a job waits for a worker that knows its code; how many
-- queues there may be; bytes of the data with which a job is put (the root holds it, too).
M.KNOWN = {
  [M.STATS_DAYS] = { 400, 1, 3660 }, [M.KEEP_DATA] = { 0, 0, 1 }, [M.HISTORY_BYTES] = { 262144, 1024, 16777216 },
  [M.UNKNOWN_FOR] = { 600, 0, 2592000 }, [M.MAX_QUEUES] = { 1000000, 1, 1000000000 },
  [M.MAX_DATA] = { 1048576, M.LEAST_DATA, 67108864 },
}

-- The value of one of them.
function M.number(ctx, name)
  return tonumber(call("HGET", ctx.keys.root, name) or nil) or M.KNOWN[name][1]
end

-- How many bytes the data with which a job is put may have.
function M.max_data(ctx)
  local most = root.max_data(ctx)
  return most > 0 and most or M.KNOWN[M.MAX_DATA][1]
end

-- All of them, as (name, value) pairs in the order of their names.
function M.all(ctx)
  local found = {}
  for name in pairs(M.KNOWN) do found[#found + 1] = name end
  table.sort(found)
  local pairs_ = {}
  for i = 1, #found do pairs_[2 * i - 1], pairs_[2 * i] = found[i], M.number(ctx, found[i]) end
  return pairs_
end

-- Sets one; nil gives it its default back.
function M.set(ctx, name, value)
  if value then
    call("HSET", ctx.keys.root, name, value)
  else
    call("HDEL", ctx.keys.root, name)
  end
  if name == M.MAX_DATA then root.set(ctx.keys.root, "max_data", value or 0) end
  if name == M.KEEP_DATA then root.set_flag(ctx, root.KEEPING, value == 1) end
end

return M
