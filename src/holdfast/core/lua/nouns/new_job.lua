-- new_job: a job that nobody knows yet, made up before anything of it is written.
--
-- `plan` gathers what a call has to write: `sets` (key: score and member in turns), `pending`
-- (throttle: jids), `tags`, `parents` (see `links`); `room` keeps how many slots were found free.
local record = require("base.record")
local extra = require("nouns.extra")
local history = require("nouns.history")
local options = require("nouns.options")
local state = require("nouns.state")
local tag = require("nouns.tag")
local links = require("nouns.dependency_links")
local M = {}

local NAMED, DEPENDING, BUDGETED = record.FLAG.NAMED, record.FLAG.DEPENDING, record.FLAG.BUDGETED
local NOTHING = {}

-- What a job will be, but for its place.
function M.outline(ctx, target, one, plan)
  local jid, opts = one.jid, one.opts
  local r = {
    state = state.WAITING, flags = ctx.events.flags(ctx, jid), attempts = 0, created = ctx.now,
    queue = target.queue.name, token = 0, worker = "", fields = {}, ids = false,
  }
  if target.losses then r.flags = r.flags + BUDGETED end
  if opts or target.losses then options.set(ctx, jid, r, opts or NOTHING, target.losses) end
  if not opts then return r end
  if opts.throttles then r.ids = ctx.throttles.assign(ctx, target.queue, jid, r, opts.throttles) end
  if opts.tags then tag.plan(ctx, jid, r, opts.tags, plan.tags) end
  if opts.depends then links.plan(ctx, jid, r, opts.depends, plan.parents) end
  return r
end

-- The full throttle that keeps a job aside, or nil.
local function full_one(ctx, r, plan, own)
  local ids, room = r.ids or NOTHING, plan.room
  for i = 1, #ids do
    room[ids[i]] = room[ids[i]] or ctx.throttles.free(ctx, ids[i])
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
function M.place(ctx, target, jid, r, plan, position)
  local name = target.queue.name
  if M.waits(r) then
    r.state = state.DEPENDS
    if target.delay > 0 then extra.set(ctx, jid, r, "w", ("%.17g"):format(ctx.now + target.delay)) end
    append(plan.sets, target.queue.depends, ctx.now, jid)
  elseif target.delay > 0 then
    r.state = state.SCHEDULED
    append(plan.sets, target.queue.scheduled, ctx.now + target.delay, jid)
  else
    local full = (target.limited or r.flags >= NAMED) and full_one(ctx, r, plan, target.queue.own)
    if not full then
      append(plan.sets, target.queue.waiting, ctx.order.entry(position + 1, target.priority, ctx.now, jid))
      return position + 1
    end
    history.add(ctx, jid, r, history.THROTTLED, name)
    r.state = state.THROTTLED
    plan.pending[full] = plan.pending[full] or {}
    insert(plan.pending[full], jid)
  end
  return position
end

return M
