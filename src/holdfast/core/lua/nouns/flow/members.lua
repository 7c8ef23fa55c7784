-- members: the jobs of a large group, which are counted, and not named by those that wait for them.
--
-- A flow may have one such group, of any number of jobs. Job 0 of the flow stands for it: no worker runs that one, it
-- waits until its members have ended, and then ends as they did; what follows waits for it as for any other job. The
-- members come behind the jobs that were put with the flow, in calls of their own, until the group is closed.
--
-- In the hash `J:<flow>`: `members`, how many were added, the last ones at `added`, and `put`, how many of them by
-- calls that may be repeated from the first member on; `done`, `failed` and `cancelled`, how many have ended so;
-- `open`, "1" until it is closed; `policy`, as that of an edge; `gather`, whether the job of the group ends with all
-- results (`list`) or with where they are (`pages`); `stride`, how many jobs each member is, of which the last one is
-- counted; `ended`, once the job of the group is complete. The hash `J:<flow>\tr` has by number what members ended
-- with that are complete, `\tf` and `\tc` why others failed or were cancelled: so an end counts once, however often it
-- is reported. The hash `J:<flow>\ta` has what members added while they ran: so a second run of one adds it no second
-- time.
local settings = require("nouns.setting.settings")
local M = {}

M.KLASS = "holdfast.group" -- of the job that stands for a group
M.PAGES = "pages"
local DONE, FAILED, CANCELLED, ADDED = "\tr", "\tf", "\tc", "\ta"
local RUN = "run"
local PIECE = 512

-- The flow that counts a job.
function M.flow_of(jid) return match(jid, "^(.+)%-%d+$") end

local function number_of(group, jid) return sub(jid, #group.flow + 2) end

local function enter(ctx, group, jid, which, count, text)
  local key = ctx.keys.flow .. group.flow
  local is_first = group.has_ended and group.gather ~= M.PAGES -- what they end with is not kept any more
    or call("HSET", key .. which, number_of(group, jid), text) == 1
  if is_first then group[count] = call("HINCRBY", key, count, 1) end
end

-- A member is complete.
function M.completed(ctx, group, jid, result) enter(ctx, group, jid, DONE, "done", result or "") end

-- A member failed; `text` is how that looks to a job that runs whatever became of it.
function M.failed(ctx, group, jid, text) enter(ctx, group, jid, FAILED, "failed", text) end

-- A member was cancelled.
function M.cancelled(ctx, group, jid, text) enter(ctx, group, jid, CANCELLED, "cancelled", text) end

-- A member that failed is tried again, or goes.
function M.revived(ctx, jid)
  local flow = M.flow_of(jid)
  local key = ctx.keys.flow .. flow
  local was_counted = call("HDEL", key .. FAILED, sub(jid, #flow + 2)) == 1 or call("HGET", key, "ended") == "1"
  if was_counted then call("HINCRBY", key, "failed", -1) end
end

function M.write(ctx, flow, group)
  local key = ctx.keys.flow .. flow
  call("HSET", key, "members", 0, "open", 1, "policy", group.policy, "gather", group.gather, "stride", group.stride,
    "added", ctx.now)
end

-- The large group of a flow, nil if there is none.
function M.read(ctx, flow)
  local found = call("HMGET", ctx.keys.flow .. flow, "policy", "members", "open", "gather", "stride", "total", "ended",
    "done", "failed", "cancelled", "added", "put")
  if not found[1] then return nil end
  return {
    flow = flow, policy = found[1], members = tonumber(found[2]), is_open = found[3] == "1", gather = found[4],
    stride = tonumber(found[5]), first = tonumber(found[6]), has_ended = found[7] == "1",
    done = tonumber(found[8] or 0), failed = tonumber(found[9] or 0), cancelled = tonumber(found[10] or 0),
    added = tonumber(found[11] or 0), put = tonumber(found[12] or 0),
  }
end

-- What stands for one addition by a member that runs: which member, and how often this run of it has added.
local function addition(flow, adder) return format("%s.%d", sub(adder.jid, #flow + 2), adder.times) end

-- Whether a member added these before, in another run or a repeated call.
function M.was_added(ctx, flow, adder)
  return call("HGET", ctx.keys.flow .. flow .. ADDED, addition(flow, adder)) and true or false
end

function M.add(ctx, flow, count, is_repeat, adder)
  local key = ctx.keys.flow .. flow
  if is_repeat then call("HINCRBY", key, "put", count) end
  call("HINCRBY", key, "members", count)
  call("HSET", key, "added", ctx.now)
  if adder then call("HSET", key .. ADDED, addition(flow, adder), count) end
end

function M.close(ctx, flow) call("HSET", ctx.keys.flow .. flow, "open", 0) end

-- Whether all that a group waits for has ended.
function M.are_over(group)
  if group.is_open then return false end
  local ended = group.policy == RUN and group.failed + group.cancelled or 0
  return group.done + ended >= group.members
end

-- Why the job of a group cannot be complete any more, nil if it can.
function M.problem(group)
  if group.cancelled == 0 or group.policy == RUN then return nil end
  return format("%d of the jobs of its group %s cancelled", group.cancelled, group.cancelled == 1 and "was" or "were")
end

-- What members from the one at `from` on, the first is 0, ended with; false for one that has not, or that cannot be
-- read: of a group that runs in any case, outcomes.
function M.results(ctx, group, from, count)
  local key, names, list = ctx.keys.flow .. group.flow, {}, {}
  for i = from, min(from + count, group.members) - 1 do
    names[#names + 1] = format("%d", group.first + (i + 1) * group.stride - 1)
  end
  if not names[1] then return list end
  local found = call("HMGET", key .. DONE, unpack_(names))
  for i = 1, #found do
    local text = found[i] or nil
    if group.policy == RUN then
      text = text and format('{"ok":true,"result":%s,"failure":null}', text == "" and "null" or text)
        or call("HGET", key .. FAILED, names[i]) or call("HGET", key .. CANCELLED, names[i])
    end
    list[i] = text or false
  end
  return list
end

-- All results as a list, or nil and why not.
local function listed(ctx, group)
  local pieces, size, most = {}, 1, settings.max_data(ctx)
  for from = 0, group.members - 1, PIECE do
    local list = M.results(ctx, group, from, PIECE)
    for i = 1, #list do
      if not list[i] or list[i] == "" then
        return nil, format("%s-%d has no result", group.flow, group.first + (from + i) * group.stride - 1)
      end
      size = size + #list[i] + 1
    end
    pieces[#pieces + 1] = concat(list, ",")
    if size > most then
      return nil, format("the results of its group have more bytes than max-data allows (%d): take Results[…]", most)
    end
  end
  return "[" .. concat(pieces, ",") .. "]"
end

-- What the job of a group ends with, or nil and why it cannot.
function M.gathered(ctx, group)
  if group.gather ~= M.PAGES then return listed(ctx, group) end
  return format('{"flow":%s,"count":%d}', encode(group.flow), group.members)
end

-- The job of a group is complete. What went on with it is not kept twice.
function M.finish(ctx, group)
  local key = ctx.keys.flow .. group.flow
  call("HSET", key, "ended", 1)
  if group.gather ~= M.PAGES then call("UNLINK", key .. DONE, key .. FAILED, key .. CANCELLED, key .. ADDED) end
end

-- The flow is forgotten.
function M.forget(ctx, flow)
  local key = ctx.keys.flow .. flow
  call("UNLINK", key .. DONE, key .. FAILED, key .. CANCELLED, key .. ADDED)
end

return M
