-- report: the progress that a running job reports, and the last lines it logged.
--
-- Extra fields `p` {fraction as text, note, when} and `g`, the lines. They stay over
-- retries and at a failure, and go when a new life begins.
local record = require("base.record")
local text = require("base.text")
local extra = require("nouns.job.extra")
local M = {}

M.MOST_LINES, M.MOST_BYTES = 100, 8192
local LONGEST_NOTE = 1000 -- bytes

-- Write the record afterwards.
function M.progress(ctx, jid, r, fraction, note)
  extra.set(ctx, jid, r, "p", mp_pack({ fraction, text.cut(note, LONGEST_NOTE), ctx.now }))
end

-- The newest of the lines that were kept and those in args[first …], as many as fit.
local function tail(had, args, first)
  local count, size, newest = 0, 0, {}
  for i = #args, first - #had, -1 do
    local line = i >= first and text.cut(args[i], M.MOST_BYTES) or had[#had + i - first + 1]
    size = size + #line
    if count >= M.MOST_LINES or size > M.MOST_BYTES then break end
    count = count + 1
    newest[count] = line
  end
  local lines = {}
  for i = 1, count do lines[i] = newest[count + 1 - i] end
  return lines
end

-- The lines that are kept, nil if there are none.
function M.kept(ctx, jid, r)
  local packed = extra.get(ctx, jid, r, "g")
  return packed and mp_unpack(packed) or nil
end

-- Appends the lines in args[first …]. Write the record afterwards.
function M.lines(ctx, jid, r, args, first)
  extra.set(ctx, jid, r, "g", mp_pack(tail(M.kept(ctx, jid, r) or {}, args, first)))
end

-- A new life begins, which also was never given back.
function M.clear(ctx, jid, r)
  if record.has(r.flags, record.FLAG.EXTRA) then call("HDEL", ctx.keys.extra .. jid, "p", "g", "c", "u") end
end

return M
