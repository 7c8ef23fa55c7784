-- depend: what a waiting job waits for is changed, or looked at.
local batch = require("base.batch")
local refuse = require("base.refuse")
local cycle = require("nouns.dependency.dependency_cycle")
local dependency = require("nouns.dependency.dependency")
local job = require("nouns.job.job")
local dependents = require("nouns.dependency.dependents")
local members = require("nouns.flow.members")
local state = require("nouns.job.state")
local links = require("nouns.dependency.dependency_links")
local M = {}

function M.slice(args, first, last)
  local part = {}
  for i = first, last do part[i - first + 1] = args[i] end
  return part
end

-- Why this cannot be, or nil: a cycle, or more parents than a job may have.
local function refusal(ctx, jid, r, parents)
  local refused, most = cycle.refusal(ctx, {}, jid, r, parents), ctx.bounds.parents or dependency.MOST
  if refused or dependency.count(ctx, jid, r) + #parents <= most then return refused end
  return refuse.job("TOO_MANY", "at most " .. most .. " dependencies a job")
end

-- A job that waits for others waits for these too. Returns nil, or the refusal.
function M.add(ctx, jid, r, parents)
  local refused = refusal(ctx, jid, r, parents)
  if refused then return refused end
  links.add(ctx, jid, r, parents, dependency.parents(ctx, jid, r))
end

-- Refuses to let a job start without what the jobs that it waits for end with.
local function check_places(ctx, jid, r)
  if r.klass == members.KLASS then refuse.call("DEPENDENCY_REFUSED", jid .. " stands for a group, and ends with it") end
  if call("HGET", ctx.keys.extra .. jid, dependency.PLACES) then
    refuse.call("DEPENDENCY_REFUSED",
      jid .. " has places in its data for results of the jobs that it waits for: retry these, or cancel it")
  end
end

-- It does not wait for these any more.
function M.remove(ctx, jid, r, parents)
  if not links.remove(ctx, jid, r, parents) then dependents.by_hand(ctx, jid, r) end
end

-- `mode` is add, remove or all (let go of all); `args[first … last]` are parents. A job
-- whose last parent is let go is ready at once, whatever delay it was put with. Returns 1.
function M.run(ctx, mode, jid, args, first, last)
  local r = job.read(ctx, jid)
  if not r then refuse.call("JOB_NOT_FOUND", jid) end
  if r.state ~= state.DEPENDS then
    refuse.call("WRONG_STATE", jid .. " is not in the depends state: " .. state.NAME[r.state])
  end
  if mode ~= "add" then check_places(ctx, jid, r) end
  local parents = mode == "all" and dependency.parents(ctx, jid, r) or M.slice(args, first, last)
  local refused = (mode == "add" and M.add or M.remove)(ctx, jid, r, parents)
  if refused then refuse.for_all(refused) end
  return 1
end

-- A page of the jobs that wait for this one, the first to come first, behind `cursor`
-- ("score jid", "" for the beginning). Returns the next cursor ("" at the end), then jids.
function M.dependents(ctx, jid, score, member, count)
  local set = ctx.keys.dependents .. jid
  local page = batch.page(set, 0, call("ZCARD", set), score, member, count, false)
  local reply, n = { "" }, #page
  for i = 1, n, 2 do reply[#reply + 1] = page[i] end
  if n == 2 * count then reply[1] = concat({ page[n], page[n - 1] }, " ") end
  return reply
end

return M
