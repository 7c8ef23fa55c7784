-- job_row: all that is known of a job, as people want to see it. Writes nothing.
local keys = require("base.keys")
local record = require("base.record")
local dependency = require("nouns.dependency.dependency")
local extra = require("nouns.job.extra")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local definition = require("nouns.throttle.throttle_definition")
local options = require("nouns.job.options")
local result = require("nouns.job.result")
local state = require("nouns.job.state")
local tag = require("nouns.job.tag")
local M = {}

local WHAT, WHEN, NAME, DATA = history.AT.what, history.AT.when, history.AT.name, history.AT.data

local FLAG = record.FLAG
local MOST = 1000 -- jids shown of each kind of relatives
local NAMES, LINES, BYTES = 16, 2, 8192 -- which take as long as a row without any

-- Every line's code becomes its word. A job that moved on to a next queue was
-- done in one and put into the other.
local function history_rows(ctx, jid, r)
  local lines, words, queue = history.lines(ctx, jid, r), {}, nil
  for i = 1, #lines do
    local line = lines[i]
    local what, name = line[WHAT], line[NAME]
    local word = history.WHAT[what]
    if word then line[WHAT], line[DATA] = word, nil end -- a line of somebody's own keeps its data there
    words[#words + 1] = line
    if what == history.ADVANCED then
      line[WHAT], line[NAME] = history.WHAT[history.DONE], queue or name
      words[#words + 1] = { "put", line[WHEN], 0, 0, "", name, "" }
    end
    if what == history.PUT or what == history.POPPED or what == history.ADVANCED then queue = name end
  end
  return words
end

-- State as of now, when its lease ends, when it is due: a scheduled job that is due shows as waiting.
function M.placed(ctx, jid, r)
  local queue = keys.of_queue(ctx, r.queue)
  local expires, due, name = 0, 0, state.NAME[r.state]
  if r.state == state.RUNNING then expires = tonumber(call("ZSCORE", queue.leases, jid) or 0) end
  if r.state == state.SCHEDULED then
    due = tonumber(call("ZSCORE", queue.scheduled, jid) or 0)
    if due <= ctx.now then name = "waiting" end
  end
  return name, expires, due
end

local function unpacked(packed) return packed and mp_unpack(packed) or {} end

-- What is noted beside the record: failure, progress, log, template, earlier data, moment.
local function noted(ctx, jid, r)
  if not record.has(r.flags, FLAG.EXTRA) then return {}, {}, {}, "", {}, 0 end
  local found = extra.many(ctx, jid, "e", "p", "g", "s", "v", "m")
  return unpacked(found[1]), unpacked(found[2]), unpacked(found[3]), found[4] or "", unpacked(found[5]),
    tonumber(found[6] or nil) or 0
end

-- A job that was never popped has no room for its end in its record.
local function ended_of(r, failure) return r.attempts > 0 and r.ended or failure[3] or 0 end

-- What becomes of a job of a flow if each of its open parents does not complete; nothing of other jobs.
local function policies_of(ctx, jid, parents)
  if not parents[1] then return {} end
  local names, found = { dependency.PLACES }, {}
  for i = 1, #parents do names[i + 1] = dependency.OPEN .. parents[i] end
  local edges = call("HMGET", ctx.keys.extra .. jid, unpack_(names))
  local is_of_flow = edges[1]
  for i = 1, #parents do
    found[i] = dependency.edge_of(edges[i + 1] or "").policy
    is_of_flow = is_of_flow or found[i] ~= dependency.WAIT
  end
  return is_of_flow and found or {}
end

-- One job, in the order of the protocol's job row. Behind the result: options
-- (option, value)…, progress (fraction, note, when) or nothing, log lines, the template
-- it came from, tracked, earlier data (attempt, data)…, the moment of the template that it is for (ms, 0: none),
-- the policies of its parents.
function M.of(ctx, jid, r)
  local parents = dependency.parents(ctx, jid, r)
  local running, over = r.state == state.RUNNING, r.state == state.COMPLETE or r.state == state.FAILED
  local queue = keys.of_queue(ctx, r.queue)
  local name, expires, due = M.placed(ctx, jid, r)
  local failure, progress, log, template, earlier, moment = noted(ctx, jid, r)
  return {
    jid, r.klass, name, r.queue, running and r.worker or "", r.priority, r.retries, r.remaining, r.attempts, r.losses,
    r.created, r.queued, r.popped, over and ended_of(r, failure) or 0, running and r.token or 0, expires, due, r.flags,
    job.body(ctx, jid, r), tag.of(ctx, jid, r), definition.ids(ctx, queue, jid, r), parents,
    dependency.children(ctx, jid, r, MOST), failure, history_rows(ctx, jid, r), result.read(ctx, jid),
    options.flat(ctx, jid, r), progress, log, template, record.has(r.flags, FLAG.TRACKED) and 1 or 0, earlier, moment,
    policies_of(ctx, jid, parents),
  }
end

-- What a row takes of a call, in the time that one of its plainest kind takes.
function M.weight(row)
  local names = #row[20] + #row[21] + #row[22] + #row[23]
  return 1 + names / NAMES + (#row[25] + #row[29] + #row[32]) / LINES + #row[19] / BYTES
end

return M
