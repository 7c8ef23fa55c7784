-- flow_reading: what flows are, and what their jobs have come to; and flows that are listed no more.
local refuse = require("base.refuse")
local batch = require("base.batch")
local flows = require("nouns.flow.flow")
local members = require("nouns.flow.members")
local M = {}

local PIECE = 256 -- jobs read at once

-- What is known of some flows: total, created and label of each, an empty list of one that is not there. Of one with a
-- large group also how many members that has, of how many jobs each, how many of them are complete, failed, and were
-- cancelled, whether it is open, and when it got its last ones. At the end the number of the job that ends it.
function M.get(ctx, args, first, last)
  local rows = {}
  for i = first, last do
    local total, created, label, ends = flows.read(ctx, args[i])
    local row, group = { total, created, label }, members.read(ctx, args[i])
    rows[#rows + 1] = row
    if group then
      local about = {
        group.members, group.stride, group.done, group.failed, group.cancelled, group.is_open and 1 or 0, group.added,
      }
      for k = 1, #about do row[#row + 1] = about[k] end
    end
    row[#row + 1] = ends
  end
  return rows
end

-- The states of up to `count` jobs of a flow from the number `start` on, as their numbers in the record, 0 for one that
-- is not kept any more.
function M.states(ctx, flow, start, count)
  local total, states = flows.read(ctx, flow), {}
  if not total then refuse.call("JOB_NOT_FOUND", flow) end
  local group = members.read(ctx, flow)
  local over = min(start + count, total + (group and group.members * group.stride or 0))
  for first = start, over - 1, PIECE do
    local names = {}
    for number = first, min(first + PIECE, over) - 1 do
      names[#names + 1] = ctx.keys.job .. flows.jid(flow, number)
    end
    for _, bytes in ipairs(call("MGET", unpack_(names))) do
      states[#states + 1] = bytes and ctx.record.state_of(bytes) or 0
    end
  end
  return states
end

-- What the jobs of some flows are and wait for: see `flows.steps`.
function M.steps(ctx, flow)
  local steps = flows.steps(ctx, flow)
  if not steps then refuse.call("JOB_NOT_FOUND", flow) end
  return steps
end

-- A page of flows, the newest first, behind `score member`: the next cursor ("" at the end), how many there are, the
-- ids.
function M.list(ctx, score, member, count)
  local total = call("ZCARD", ctx.keys.flows)
  local page = batch.page(ctx.keys.flows, 0, total, score, member, count, true)
  local reply, n = { "", total }, #page
  for i = 1, n, 2 do reply[#reply + 1] = page[i] end
  if n == 2 * count then reply[1] = concat({ page[n], page[n - 1] }, " ") end
  return reply
end

-- Flows are not listed any more. Returns 1 for each that was, 0 also for one that is awaited.
function M.forget(ctx, args, first, last)
  local reply = {}
  for i = first, last do
    reply[#reply + 1] = flows.is_awaited(ctx, args[i]) and 0 or flows.forget(ctx, args[i])
  end
  ctx.events.changed(ctx, "flows")
  return reply
end

-- What members of a large group ended with, from the one at `start` on, the first is 0: false where there is nothing.
function M.results(ctx, flow, start, count)
  local group = members.read(ctx, flow)
  if not group then refuse.call("JOB_NOT_FOUND", "flow " .. flow .. " has no large group") end
  local list, size = members.results(ctx, group, start, count), 0
  for i = 1, #list do
    size = size + (list[i] and #list[i] or 0)
    if size > ctx.bounds.reply and i > 1 then
      for k = #list, i, -1 do list[k] = nil end
    end
  end
  return list
end

return M
