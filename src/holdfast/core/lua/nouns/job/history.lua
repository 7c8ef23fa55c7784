-- history: what happened to a job, written only when the header cannot imply it.
--
-- A plain job's lines (put, popped, done) follow from its record. The first
-- transition that does not (retry, failure, lost lease, move …) writes the lines
-- implied so far and then its own; from then on flag HISTORY is up, and every
-- line is packed in `x:<jid>` field `h`.
local record = require("base.record")
local config = require("nouns.setting.config")
local extra = require("nouns.job.extra")
local state = require("nouns.job.state")
local M = {}

local HISTORY = record.FLAG.HISTORY
local SHORTEST = 8 -- bytes: no packed line is shorter
local PIECE = 4000 -- lines unpacked at once

-- What a line of the history has, in this order.
M.AT = { what = 1, when = 2, attempt = 3, token = 4, worker = 5, name = 6, cause = 7, data = 8 }
local AT = M.AT

M.WHAT = {
  "put", "popped", "done", "failed", "failed-retries", "retried", "timed-out", "throttled", "advanced",
  "preempted", "crashed", "lost", "unknown",
}
M.PUT, M.POPPED, M.DONE, M.FAILED, M.EXHAUSTED = 1, 2, 3, 4, 5
M.RETRIED, M.TIMED_OUT, M.THROTTLED, M.ADVANCED = 6, 7, 8, 9
-- How attempts end of which the older protocols know nothing. The name of these lines is the
-- budget that paid, "" if it cost nothing.
M.PREEMPTED, M.CRASHED, M.LOST, M.UNKNOWN = 10, 11, 12, 13

-- The lines a plain job's header implies, oldest first.
local function implied(r)
  local lines = { { M.PUT, r.created, 0, 0, "", r.queue, "" } }
  if r.attempts > 0 then
    lines[2] = { M.POPPED, r.popped, r.attempts, r.token, r.worker, r.queue, "" }
    if r.state == state.COMPLETE then lines[3] = { M.DONE, r.ended, r.attempts, r.token, r.worker, r.queue, "" } end
  end
  return lines
end

-- The lines of a packed history. A call of Lua returns fewer than 8000 values, so a
-- very long one (`max-job-history` 0) is read in pieces.
local function unpacked(text)
  if #text <= PIECE * SHORTEST then return { mp_unpack(text) } end
  local lines, place = {}, 0
  while place >= 0 do
    local some = { mp_some(text, PIECE, place) }
    place = some[1]
    for i = 2, #some do lines[#lines + 1] = some[i] end
  end
  return lines
end

local function stored(ctx, jid)
  local packed = call("HGET", ctx.keys.extra .. jid, "h")
  if not packed then return {} end
  return unpacked(packed)
end

-- All lines of a job, each {what, when, attempt, token, worker, name, reason}.
function M.lines(ctx, jid, r)
  if record.has(r.flags, HISTORY) then return stored(ctx, jid) end
  return implied(r)
end

local function packed_lines(lines)
  local texts = {}
  for i = 1, #lines do texts[i] = mp_pack(lines[i]) end
  return concat(texts)
end

-- The first line, and of the others the newest: `most` lines in all, and as many bytes.
-- The very newest stays, however long.
local function newest(lines, most, bytes)
  local first = mp_pack(lines[1])
  local from, size, kept = #lines + 1, #first, { first }
  while from > 2 and #lines - from + 2 < most do
    local text = mp_pack(lines[from - 1])
    size = size + #text
    if size > bytes and from <= #lines then break end
    from = from - 1
    kept[#lines - from + 2] = text
  end
  for i = 0, (#kept - 3) / 2 do kept[2 + i], kept[#kept - i] = kept[#kept - i], kept[2 + i] end
  return concat(kept)
end

-- What the settings `max-job-history` (lines) and `max-history-bytes` allow, and how many bytes this call has written;
-- made once a call.
local function limits(ctx)
  local found = ctx.history
  if not found then
    local most = config.number(ctx, "max-job-history")
    local bytes = tonumber(call("HGET", ctx.keys.root, "max-history-bytes") or nil) or ctx.bounds.history
    found = { most = most > 0 and most or 1 / 0, bytes = bytes, written = 0 }
    ctx.history = found
  end
  return found
end

function M.written(ctx) return ctx.history and ctx.history.written or 0 end

-- Keeps what the settings allow.
local function trimmed(ctx, text)
  local found = limits(ctx)
  found.written = found.written + #text
  if #text <= found.most * SHORTEST and #text <= found.bytes then return text end
  return newest(unpacked(text), found.most, found.bytes)
end

-- Appends a line. The first one of a plain job raises HISTORY. `had` (nil: not read, false: none): its packed lines.
local function append(ctx, jid, r, line, had)
  if record.has(r.flags, HISTORY) then
    local key = ctx.keys.extra .. jid
    if had == nil then had = call("HGET", key, "h") end
    call("HSET", key, "h", trimmed(ctx, (had or "") .. mp_pack(line)))
  else
    extra.set(ctx, jid, r, "h", trimmed(ctx, packed_lines(implied(r)) .. mp_pack(line)))
    r.flags = r.flags + HISTORY
  end
end

-- Appends a line, unless this root has no such lines. `left`, the
-- retries left, is for repeats of that call.
function M.note(ctx, jid, r, what, name, reason, left, had)
  if ctx.omitted_lines[what] then return end
  append(ctx, jid, r, { what, ctx.now, r.attempts, r.token, r.worker, name or "", reason or "", left }, had)
end

-- The same, and raises HISTORY in any case. Call it while the record still shows what was
-- before.
function M.add(ctx, jid, r, what, name, reason, left, had)
  M.note(ctx, jid, r, what, name, reason, left, had)
  if record.has(r.flags, HISTORY) then return end -- this root has no such line, but all that come
  extra.set(ctx, jid, r, "h", packed_lines(implied(r)))
  r.flags = r.flags + HISTORY
end

-- A line of a user's own: `what` is any name, `data` a JSON object or "". Write the
-- record afterwards.
function M.log(ctx, jid, r, what, data)
  local runs = r.state == state.RUNNING
  append(ctx, jid, r, { what, ctx.now, r.attempts, runs and r.token or 0, runs and r.worker or "", "", "", data })
end

M.REFUSED = "refused" -- by its name, so that older clients read it as a line of a user's own

local function note_refused(ctx, jid, worker, token, what)
  local packed = call("HGET", ctx.keys.extra .. jid, "h")
  local holder = mp_pack(token) .. mp_pack(worker)
  if not packed or not find(packed, holder, 1, true) then return end
  if find(packed, holder .. mp_pack("") .. mp_pack(what), 1, true) then return end
  local lines, last = unpacked(packed), nil
  for i = 1, #lines do
    local line = lines[i]
    local is_its = line[AT.token] == token and line[AT.worker] == worker
    if is_its and (not last or last[AT.what] == M.POPPED) then last = line end
  end
  -- A heartbeat of that moment was under way when the attempt ended.
  if not last or what == "heartbeat" and ctx.now - last[AT.when] < 1000 then return end
  local data = format('{"after": %.3f}', (ctx.now - last[AT.when]) / 1000)
  local line = { M.REFUSED, ctx.now, last[AT.attempt], token, worker, "", what, data }
  call("HSET", ctx.keys.extra .. jid, "h", trimmed(ctx, packed .. mp_pack(line)))
end

-- A worker came back to an attempt that is not its own any more: what it sent (`complete`, `fail`, `retry`,
-- `heartbeat`) is noted, once for each, with the seconds since it lost the attempt. Only where a line shows that it had
-- it, so made-up tokens make no history long. The call is refused, whatever comes of that.
function M.refused(ctx, jid, r, worker, token, what)
  if not ctx.bounds.tallies or not r or not record.has(r.flags, HISTORY) then return end
  pcall(note_refused, ctx, jid, worker, token, what)
end

-- Whether a job that waits has failed, and nothing but puts and throttles came after that: it was put to work again
-- and did not run since.
function M.failed_last(ctx, jid, r)
  local lines = M.lines(ctx, jid, r)
  for i = #lines, 1, -1 do
    local what = lines[i][AT.what]
    if what == M.FAILED or what == M.EXHAUSTED then return true end
    if M.WHAT[what] and what ~= M.PUT and what ~= M.THROTTLED then return false end
  end
  return false
end

-- How the attempt with this token ended, for a call that is sent again:
-- the code of its last line that ended it, and that line. nil if it did not end.
function M.ending(ctx, jid, r, worker, token)
  if not record.has(r.flags, HISTORY) then return nil end
  local lines = stored(ctx, jid)
  for i = #lines, 1, -1 do
    local line = lines[i]
    local what = line[AT.what]
    local ends = what == M.DONE or what == M.FAILED or what == M.EXHAUSTED or what == M.RETRIED or what == M.ADVANCED
    if ends and line[AT.token] == token and line[AT.worker] == worker then return what, line end
  end
end

return M
