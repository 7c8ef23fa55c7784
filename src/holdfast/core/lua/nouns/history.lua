-- history: what happened to a job, told only when the header cannot imply it.
--
-- A plain job's lines (put, popped, done) follow from its record. The first
-- transition that does not (retry, failure, lost lease, move …) writes the lines
-- implied so far and then its own; from then on the job is *told*: flag TOLD,
-- every line packed in `x:<jid>` field `h`.
local late = require("base.late")
local record = require("base.record")
local config = require("nouns.config")
local state = require("nouns.state")
local M = {}

local TOLD, EXTRA = record.FLAG.TOLD, record.FLAG.EXTRA
local SHORTEST = 8 -- bytes: no packed line is shorter
local PIECE = 4000 -- lines unpacked at once

M.WHAT = {
  "put", "popped", "done", "failed", "failed-retries", "retried", "timed-out", "throttled", "advanced",
}
M.PUT, M.POPPED, M.DONE, M.FAILED, M.EXHAUSTED = 1, 2, 3, 4, 5
M.RETRIED, M.TIMED_OUT, M.THROTTLED, M.ADVANCED = 6, 7, 8, 9

local call, mp_pack, mp_unpack, mp_some
late.bind(function()
  call, mp_pack, mp_unpack, mp_some = redis.call, cmsgpack.pack, cmsgpack.unpack, cmsgpack.unpack_limit
end)

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

local function stored(at, jid)
  local packed = call("HGET", at.keys.extra .. jid, "h")
  if not packed then return {} end
  return unpacked(packed)
end

-- All lines of a job, each {what, when, attempt, token, worker, name, reason}.
function M.lines(at, jid, r)
  if record.has(r.flags, TOLD) then return stored(at, jid) end
  return implied(r)
end

local function packed_lines(lines)
  local text = ""
  for i = 1, #lines do text = text .. mp_pack(lines[i]) end
  return text
end

-- Keeps the first line and the newest N - 1.
local function trimmed(at, text)
  local most = config.number(at, "max-job-history")
  if most <= 0 or #text <= most * SHORTEST then return text end
  local lines = unpacked(text)
  local kept = { lines[1] }
  for i = math.max(#lines - most + 2, 2), #lines do kept[#kept + 1] = lines[i] end
  return packed_lines(kept)
end

-- Appends a line to a told job, if this root tells of such things. `left`, the
-- retries left, is for repeats of that call.
function M.note(at, jid, r, what, name, reason, left)
  if at.untold[what] then return end
  local key = at.keys.extra .. jid
  local line = mp_pack({ what, at.now, r.attempts, r.token, r.worker, name or "", reason or "", left })
  call("HSET", key, "h", trimmed(at, (call("HGET", key, "h") or "") .. line))
end

-- Appends a line, making the job a told one first. Call it while the record
-- still says what was before.
function M.tell(at, jid, r, what, name, reason, left)
  if not record.has(r.flags, TOLD) then
    call("HSET", at.keys.extra .. jid, "h", packed_lines(implied(r)))
    r.flags = record.with(record.with(r.flags, TOLD), EXTRA)
  end
  M.note(at, jid, r, what, name, reason, left)
end

-- How the attempt with this token ended, for a call that is sent again:
-- the code of its last line that ended it, and that line. nil if it did not end.
function M.ending(at, jid, r, worker, token)
  if not record.has(r.flags, TOLD) then return nil end
  local lines = stored(at, jid)
  for i = #lines, 1, -1 do
    local line = lines[i]
    local what = line[1]
    local ends = what == M.DONE or what == M.FAILED or what == M.EXHAUSTED or what == M.RETRIED or what == M.ADVANCED
    if ends and line[4] == token and line[5] == worker then return what, line end
  end
end

return M
