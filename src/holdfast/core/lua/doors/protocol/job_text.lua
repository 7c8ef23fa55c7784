-- job_text: a job as that protocol shows it. An empty list inside an object is `{}`;
-- a reply that is an empty list is what the door's dialect has.
local keys = require("base.keys")
local record = require("base.record")
local failure = require("nouns.failure.failure")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local definition = require("nouns.throttle.throttle_definition")
local state = require("nouns.job.state")
local dependency = require("nouns.dependency.dependency")
local extra = require("nouns.job.extra")
local tag = require("nouns.job.tag")
local M = {}

local AT = history.AT

local FLAG = record.FLAG

local ALONE = ',"dependents":{},"dependencies":{},"spawned_from_jid":false}'

-- Numbers have 14 digits, as they have wherever the store makes texts of them; times come
-- in ms and are shown in seconds.
function M.number(x) return "" .. x end
function M.seconds(ms) return "" .. ms / 1000 end

-- Of short lists, which are the most frequent ones, no text is copied twice.
function M.list(texts, empty)
  if not texts[2] then return texts[1] and "[" .. texts[1] .. "]" or empty end
  if not texts[3] then return "[" .. texts[1] .. "," .. texts[2] .. "]" end
  return "[" .. concat(texts, ",") .. "]"
end

function M.names(names, empty)
  local texts = {}
  for i = 1, #names do texts[i] = encode(names[i]) end
  return M.list(texts, empty)
end

-- The jids that a call returns, as one text or one by one.
function M.jids(ctx, jids)
  if ctx.dialect.lists_singly then return jids end
  return M.names(jids, "[]")
end

-- (name, text) pairs as one object.
function M.object(pairs_)
  local texts = {}
  for i = 1, #pairs_, 2 do texts[#texts + 1] = format("%s:%s", encode(pairs_[i]), encode(pairs_[i + 1])) end
  return "{" .. concat(texts, ",") .. "}"
end

-- What a line, shown as `what`, has beside `what` and `when`.
local function details(ctx, line, what)
  local worker, name = line[AT.worker], line[AT.name]
  if what == history.POPPED then return ',"worker":' .. encode(worker) end
  if what == history.DONE or what == history.TIMED_OUT then return "" end
  if what == history.EXHAUSTED then return ',"group":' .. encode(name) end
  if what == history.FAILED then
    return (worker ~= "" and ',"worker":' .. encode(worker) or "") .. ',"group":' .. encode(name)
  end
  return ',"' .. (what == history.THROTTLED and "queue" or ctx.dialect.put_queue) .. '":' .. encode(name)
end

-- A line of a user's own: its name and its time win over those in its data.
local function own_line(line, when)
  local shown = line[AT.data] ~= "" and decode(line[AT.data]) or {}
  shown.what, shown.when = line[AT.what], when
  return encode(shown)
end

-- A line of the history as this protocol shows it. It knows none for a retry and for what
-- only a native worker reports, and two for a job that was moved on.
local function line_text(ctx, line)
  local what, when = line[AT.what], floor(line[AT.when] / 1000)
  if not history.WHAT[what] then return own_line(line, when) end
  if what == history.RETRIED or what > history.ADVANCED then return nil end
  local first, second = "", M.number(when)
  if what == history.ADVANCED then
    first, what = '{"what":"done","when":' .. second .. "},", history.PUT
  end
  local word = what == history.EXHAUSTED and ctx.dialect.exhausted or history.WHAT[what]
  return first .. '{"what":"' .. word .. '","when":' .. second .. details(ctx, line, what) .. "}"
end

local function lines(ctx, jid, r)
  local found, texts = history.lines(ctx, jid, r), {}
  for i = 1, #found do texts[#texts + 1] = line_text(ctx, found[i]) end
  return M.list(texts, "{}")
end

-- A failure that a worker reported is shown with its second, one that was found with
-- its exact time.
local function failed(ctx, jid, r)
  local noted = failure.read(ctx, jid, r)
  if not noted then return "{}" end
  local group, message, when, worker = unpack_(noted)
  local seconds = worker ~= "" and M.number(floor(when / 1000)) or M.seconds(when)
  return '{"group":' .. encode(group) .. ',"message":' .. encode(message) .. ',"when":' .. seconds ..
    ',"worker":' .. encode(worker) .. "}"
end

-- The name of the state as of now: a scheduled job that is due shows as waiting.
function M.state(ctx, jid, r)
  if r.state == state.RUNNING then return "running" end
  if r.state == state.SCHEDULED then
    local due = call("ZSCORE", keys.of_queue(ctx, r.queue).scheduled, jid)
    if tonumber(due or 0) <= ctx.now then return state.NAME[state.WAITING] end
  end
  return state.NAME[r.state]
end

-- Who waits for the job, for whom it waits, and the template it came from.
local function links(ctx, jid, r)
  local template = extra.get(ctx, jid, r, "s")
  return ',"dependents":' .. M.names(dependency.children(ctx, jid, r, 0), "{}") ..
    ',"dependencies":' .. M.names(dependency.parents(ctx, jid, r), "{}") ..
    ',"spawned_from_jid":' .. (template and encode(template) or "false") .. "}"
end

-- `before` and `after`: what stands around it in a longer text, so that it is not copied for that.
function M.of(ctx, jid, r, before, after)
  local queue, running = keys.of_queue(ctx, r.queue), r.state == state.RUNNING
  local held = running or ctx.dialect.names_last_holder and r.state == state.STALLED
  local plain = record.is_plain(r.flags) or r.flags == FLAG.THROTTLED -- most have nothing more
  return (before or "") .. '{"jid":' .. encode(jid) .. ',"klass":' .. encode(r.klass) ..
    ',"state":"' .. M.state(ctx, jid, r) ..
    '","queue":' .. encode(r.state == state.COMPLETE and "" or r.queue) ..
    ',"worker":' .. encode(held and r.worker or "") ..
    ',"tracked":' .. (record.has(r.flags, FLAG.TRACKED) and "true" or "false") ..
    ',"priority":' .. M.number(r.priority) .. ',"expires":' ..
    (running and M.seconds(r.expires or call("ZSCORE", queue.leases, jid) or 0) or "0") ..
    ',"retries":' .. M.number(r.retries) .. ',"remaining":' .. M.number(floor(r.remaining)) ..
    ',"data":' .. encode(job.body(ctx, jid, r)) .. ',"tags":' ..
    (plain and "{}" or M.names(tag.of(ctx, jid, r), "{}")) .. ',"history":' .. lines(ctx, jid, r) ..
    ',"failure":' .. failed(ctx, jid, r) .. ',"throttles":' .. M.names(definition.ids(ctx, queue, jid, r), "{}") ..
    (plain and ALONE or links(ctx, jid, r)) .. (after or "")
end

return M
