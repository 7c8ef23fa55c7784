-- newcomer: a job that nobody knows yet, made up before anything of it is written.
--
-- `plan` gathers what a call has to write: `sets` (key: score and member in turns), `pending`
-- (throttle: jids), `tags`, `parents` (see `ties`); `room` keeps how many slots were found free.
local late = require("base.late")
local record = require("base.record")
local extra = require("nouns.extra")
local history = require("nouns.history")
local options = require("nouns.options")
local state = require("nouns.state")
local tag = require("nouns.tag")
local ties = require("nouns.ties")
local M = {}

local NAMED, DEPENDING, BUDGETED = record.FLAG.NAMED, record.FLAG.DEPENDING, record.FLAG.BUDGETED
local NOTHING = {}

local insert
late.bind(function() insert = table.insert end)

-- What a job will be, but for its place.
function M.outline(at, to, one, plan)
  local jid, wish = one.jid, one.wish
  local r = {
    state = state.WAITING, flags = at.events.flags(at, jid), attempts = 0, created = at.now, queue = to.queue.name,
    token = 0, worker = "", fields = {}, ids = false,
  }
  if to.losses then r.flags = r.flags + BUDGETED end
  if wish or to.losses then options.set(at, jid, r, wish or NOTHING, to.losses) end
  if not wish then return r end
  if wish.throttles then r.ids = at.throttles.assign(at, to.queue, jid, r, wish.throttles) end
  if wish.tags then tag.give(at, jid, r, wish.tags, plan.tags) end
  if wish.depends then ties.plan(at, jid, r, wish.depends, plan.parents) end
  return r
end

-- The full throttle that keeps a job aside, or nil.
local function full_one(at, r, plan, own)
  local ids, room = r.ids or NOTHING, plan.room
  for i = 1, #ids do
    room[ids[i]] = room[ids[i]] or at.throttles.free(at, ids[i])
    if room[ids[i]] < 1 then return ids[i] end
  end
  return room[own] and room[own] < 1 and own or nil
end

-- Whether a job will wait for others.
function M.waits(r) return r.flags >= DEPENDING and record.has(r.flags, DEPENDING) end

local function append(lists, name, score, jid)
  local list = lists[name] or {}
  lists[name] = list
  local n = #list
  list[n + 1], list[n + 2] = score, jid
end

-- Where a job goes, noted in `plan`. `position` is that of the last one that is ready;
-- returns that of this one, or the same.
function M.place(at, to, jid, r, plan, position)
  local name = to.queue.name
  if M.waits(r) then
    r.state = state.DEPENDS
    if to.delay > 0 then extra.set(at, jid, r, "w", ("%.17g"):format(at.now + to.delay)) end
    append(plan.sets, to.queue.depends, at.now, jid)
  elseif to.delay > 0 then
    r.state = state.SCHEDULED
    append(plan.sets, to.queue.scheduled, at.now + to.delay, jid)
  else
    local full = (to.limited or r.flags >= NAMED) and full_one(at, r, plan, to.queue.own)
    if not full then
      append(plan.sets, to.queue.waiting, at.order.entry(position + 1, to.priority, at.now, jid))
      return position + 1
    end
    history.tell(at, jid, r, history.THROTTLED, name)
    r.state = state.THROTTLED
    plan.pending[full] = plan.pending[full] or {}
    insert(plan.pending[full], jid)
  end
  return position
end

return M
