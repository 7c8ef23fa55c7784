-- tag: adds tags to a job or removes them; lists all tags, and the jobs that have one.
local refuse = require("base.refuse")
local job = require("nouns.job.job")
local tag = require("nouns.job.tag")
local M = {}

-- The tags a job has with those given, in the order they came, and those given, each once.
local function with(had, args, first, last)
  local all, given, seen, named = {}, {}, {}, {}
  for i = 1, #had do all[i], seen[had[i]] = had[i], true end
  for i = first, last do
    local one = args[i]
    if not seen[one] then all[#all + 1], seen[one] = one, true end
    if not named[one] then given[#given + 1], named[one] = one, true end
  end
  return all, given
end

-- The tags a job has without those named, and those of them it had.
local function without(had, args, first, last)
  local left, taken, named = {}, {}, {}
  for i = first, last do named[args[i]] = true end
  for i = 1, #had do
    local list = named[had[i]] and taken or left
    list[#list + 1] = had[i]
  end
  return left, taken
end

-- Adds the tags in args[first … last] to a job, or takes them away. Returns its tags.
function M.one(ctx, adds, jid, r, args, first, last)
  local tags, changed = (adds and with or without)(tag.of(ctx, jid, r), args, first, last)
  local most = ctx.bounds.labels
  if adds and #tags > most then refuse.call("TOO_MANY", "at most " .. most .. " tags a job") end
  if #changed == 0 then return tags end
  if adds then ctx.completed.keep_together(ctx, jid, r) end
  local change = adds and tag.add or tag.remove
  change(ctx, jid, r, tags, changed)
  job.write(ctx, jid, r)
  return tags
end

-- The same, or the refusal.
function M.run(ctx, adds, jid, args, first, last)
  local r = job.read(ctx, jid)
  if not r then refuse.call("JOB_NOT_FOUND", jid) end
  return M.one(ctx, adds, jid, r, args, first, last)
end

-- (tag, count)… of tags that at least `least` jobs have, the most used first.
function M.top(ctx, least, offset, count)
  local found = tag.top(ctx, least, offset, count)
  for i = 2, #found, 2 do found[i] = tonumber(found[i]) end
  return found
end

-- How many jobs have the tag, then a page of their jids.
function M.jobs(ctx, name, offset, count) return tag.jobs(ctx, name, offset, count) end

return M
