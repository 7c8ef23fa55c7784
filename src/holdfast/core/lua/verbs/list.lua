-- list: any set of jobs or names, page by page. Writes nothing.
--
-- A cursor is the last (score, member) of the page before. States are as of now: a job
-- that is due is waiting, after all ready jobs, and a job whose lease has ended is stalled,
-- as in the counts.
local batch = require("base.batch")
local keys = require("base.keys")
local refuse = require("base.refuse")
local job = require("nouns.job.job")
local M = {}

-- The prefix of the score of a due job, because the scores of ready jobs are not times.
M.DUE = "due:"

local function whole(set) return { { set = set, first = 0, stop = call("ZCARD", set), mark = "" } } end

-- The part of a set whose time has come by now, or the part whose time has not.
local function by_now(ctx, set, is_past, mark)
  local past = call("ZCOUNT", set, "-inf", ctx.now)
  if is_past then return { { set = set, first = 0, stop = past, mark = mark } } end
  return { { set = set, first = past, stop = call("ZCARD", set), mark = mark } }
end

-- The sets of a queue; `failed` is in the order of failures.
local OF_QUEUE = {
  waiting = function(ctx, queue)
    local ready = whole(queue.waiting)[1]
    ready.ordered = true
    return { ready, by_now(ctx, queue.scheduled, true, M.DUE)[1] }
  end,
  running = function(ctx, queue) return by_now(ctx, queue.leases, false, "") end,
  stalled = function(ctx, queue) return by_now(ctx, queue.leases, true, "") end,
  scheduled = function(ctx, queue) return by_now(ctx, queue.scheduled, false, "") end,
  depends = function(_, queue) return whole(queue.depends) end,
  throttled = function(_, queue) return whole(queue.throttled) end,
  recurring = function(_, queue) return whole(queue.recurring) end,
  failed = function(_, queue) return whole(queue.failed) end,
}

local OTHERS = {
  group = function(ctx, name) return whole(ctx.keys.group .. name) end,
  tagged = function(ctx, name) return whole(ctx.keys.tagged .. name) end,
  holders = function(ctx, name) return whole((ctx.throttles.sets(ctx, name))) end,
  pending = function(ctx, name)
    local _, pending = ctx.throttles.sets(ctx, name)
    return whole(pending)
  end,
  tracked = function(ctx) return whole(ctx.keys.marks) end,
  workers = function(ctx) return whole(ctx.keys.workers) end,
  versions = function(ctx) return whole(ctx.keys.versions) end,
  queues = function(ctx) return whole(ctx.keys.queues) end,
  topics = function(ctx) return whole(ctx.keys.topics) end,
  declared = function(ctx) return whole(ctx.keys.declared) end,
  queued = function(ctx, name) return whole(ctx.keys.queued .. name) end,
  reserved = function(ctx, name) return whole(ctx.keys.reserved .. name) end,
}

-- The sets that are listed newest first by default.
local DOWN = { failed = true, group = true, tracked = true, workers = true, versions = true }

local function parts_of(ctx, set, name)
  local of_queue = OF_QUEUE[set]
  if of_queue then return of_queue(ctx, keys.of_queue(ctx, name)) end
  return OTHERS[set](ctx, name)
end

-- The member by which the ready set knows a job.
local function ready_member(ctx, jid)
  local r = job.read(ctx, jid)
  return r and ctx.order.member(r, jid) or jid
end

-- Appends one page of a part.
local function append(ctx, found, part, score, member, count, down)
  if score and part.ordered then member = ready_member(ctx, member) end
  local page = batch.page(part.set, part.first, part.stop, score, member, count, down)
  for i = 1, #page, 2 do
    found[#found + 1] = part.ordered and ctx.order.jid(page[i]) or page[i]
    found[#found + 1] = part.mark .. page[i + 1]
  end
end

-- Splits a score into the mark of its part and the number.
local function split(score)
  if sub(score, 1, #M.DUE) == M.DUE then return M.DUE, sub(score, #M.DUE + 1) end
  return "", score
end

-- (jid, place) pairs of completed jobs, newest first; a place counts from the newest.
local function ended(ctx, score, member, count)
  return ctx.completed.page(ctx, score ~= "" and tonumber(score) or nil, member, count)
end

-- How many entries a set has.
function M.size(ctx, set, name)
  if set == "completed" then return ctx.completed.length(ctx) end
  local size = 0
  for _, part in ipairs(parts_of(ctx, set, name)) do size = size + part.stop - part.first end
  return size
end

function M.is_known(set) return set == "completed" or OF_QUEUE[set] ~= nil or OTHERS[set] ~= nil end

-- (member, score) pairs, at most `count`, behind those two ("" for the beginning).
-- `direction` is up, down, or "" for the set's own.
function M.run(ctx, set, name, score, member, count, direction)
  if set == "completed" then return ended(ctx, score, member, count) end
  local down = direction == "down" or direction == "" and DOWN[set] or false
  local parts, found = parts_of(ctx, set, name), {}
  local mark, number = split(score)
  local reached = score == ""
  for i = 1, #parts do
    local part = parts[down and #parts + 1 - i or i]
    local here = not reached and part.mark == mark
    if (reached or here) and #found < 2 * count then
      append(ctx, found, part, here and number or nil, member, count - #found / 2, down)
    end
    reached = reached or here
  end
  if not reached then refuse.call("BAD_ARGUMENT", set .. " has no score " .. score) end
  return found
end

return M
