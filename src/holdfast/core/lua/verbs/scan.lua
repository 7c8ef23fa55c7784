-- scan: a page of a set of jobs, with what a search compares of each of them. Writes nothing.
--
-- A search looks at many jobs to show a few of them: records leave as they are, for the client to read.
local keys = require("base.keys")
local record = require("base.record")
local flows = require("nouns.flow.flow")
local extra = require("nouns.job.extra")
local state = require("nouns.job.state")
local job_row = require("verbs.job_row")
local list = require("verbs.list")
local M = {}

-- The sets whose jobs can be in different states.
local MIXED = { tagged = true, tracked = true, holders = true, pending = true, flow = true }
-- The states of a record in which it depends on other sets how the job is counted.
local UNSURE = { [state.RUNNING] = true, [state.SCHEDULED] = true, [state.THROTTLED] = true }
local CODE = {}
for code = 1, #state.NAME do CODE[state.NAME[code]] = code end
local MOST_BYTES = 262144 -- of data, tags and messages in one call
local NONE = { "", "", 0 }

-- Whether a throttle still keeps it: one that it let go is ready.
local function is_held_back(ctx, jid, r) return call("ZSCORE", keys.of_queue(ctx, r.queue).throttled, jid) end

-- The state of a job as the counts of its queue have it, and when it is due or its lease ends.
local function placed(ctx, jid, bytes)
  local code = ctx.record.state_of(bytes)
  if code == state.STALLED then return state.WAITING, 0 end
  if not UNSURE[code] then return code, 0 end
  local r = ctx.record.read(bytes)
  if code == state.THROTTLED and not is_held_back(ctx, jid, r) then return state.WAITING, 0 end
  local name, expires, due = job_row.placed(ctx, jid, r)
  if expires > 0 and expires <= ctx.now then return state.STALLED, expires end
  return CODE[name], expires > 0 and expires or due
end

-- (state, due) of each job of a page.
local function all_placed(ctx, page, records)
  local found = {}
  for i = 1, #records do
    if records[i] then
      found[2 * i - 1], found[2 * i] = placed(ctx, page[2 * i - 1], records[i])
    else
      found[2 * i - 1], found[2 * i] = 0, 0
    end
  end
  return found
end

-- Long data, tags as they are packed, then group, message and time of a failure; nothing if there is none of that.
local function noted(ctx, jid, flags, wants)
  local data, tags, failure = false, false, NONE
  if wants.d and record.has(flags, record.FLAG.SPILLED) then data = call("GET", ctx.keys.body .. jid) end
  if (wants.t or wants.e) and record.has(flags, record.FLAG.EXTRA) then
    local found = extra.many(ctx, jid, "t", "e")
    tags, failure = wants.t and found[1], wants.e and found[2] and mp_unpack(found[2]) or NONE
  end
  if data or tags or failure ~= NONE then return data or "", tags or "", failure end
end

-- (index, data, tags, group, message, time) of the jobs of a page that have such; and how many jobs fill a call.
local function all_noted(ctx, page, records, wants)
  local found, bytes = {}, 0
  for i = 1, #records do
    local flags = record.flags_of(records[i])
    if flags > 0 then
      local data, tags, failure = noted(ctx, page[2 * i - 1], flags, wants)
      if data then
        local n = #found
        found[n + 1], found[n + 2], found[n + 3] = i, data, tags
        found[n + 4], found[n + 5], found[n + 6] = failure[1], failure[2], failure[3]
        bytes = bytes + #data + #tags + #failure[2]
        if bytes > MOST_BYTES then return found, i end
      end
    end
  end
  return found, #records
end

local function records_of(ctx, page)
  local names = {}
  for i = 1, #page / 2 do names[i] = ctx.keys.job .. page[2 * i - 1] end
  return #names > 0 and call("MGET", unpack_(names)) or {}
end

-- (member, score) of each entry of a page, and how many entries the set has. The jobs of a flow are no set: their
-- numbers are their scores.
local function page_of(ctx, set, name, score, member, count)
  if set == "flow" then return flows.page(ctx, name, score, count) end
  return list.run(ctx, set, name, score, member, count, ""), list.size(ctx, set, name)
end

function M.is_known(set) return set == "flow" or list.is_known(set) end

-- `count` entries of a set behind (score, member), as `list.run`. `wants` names with letters what else is
-- needed: d data, t tags, e failure. Returns whether the set ends here and its size; (jid, score) of each entry; their
-- records (false for a job that is gone); for a set of jobs in different states (state, due) of each; and `all_noted`.
-- A page ends early when it has much data.
function M.run(ctx, set, name, score, member, count, wants)
  local page, size = page_of(ctx, set, name, score, member, count)
  local is_last, records, more = #page < 2 * count and 1 or 0, records_of(ctx, page), {}
  if wants.d or wants.t or wants.e then
    local full
    more, full = all_noted(ctx, page, records, wants)
    if full < #records then is_last = 0 end
    for i = #records, full + 1, -1 do records[i], page[2 * i], page[2 * i - 1] = nil, nil, nil end
  end
  local states = MIXED[set] and all_placed(ctx, page, records) or {}
  return { is_last, size, page, records, states, more }
end

return M
