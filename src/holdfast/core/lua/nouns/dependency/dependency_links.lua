-- dependency_links: which jobs wait for which is changed.
local batch = require("base.batch")
local record = require("base.record")
local dependency = require("nouns.dependency.dependency")
local job = require("nouns.job.job")
local state = require("nouns.job.state")
local M = {}

local DEPENDING, DEPENDENTS, EXTRA = record.FLAG.DEPENDING, record.FLAG.DEPENDENTS, record.FLAG.EXTRA
local OPEN = dependency.OPEN

-- A parent gets more children: (when, jid)….
local function join(ctx, parent, p, entries)
  call("ZADD", ctx.keys.dependents .. parent, "NX", unpack_(entries))
  if record.has(p.flags, DEPENDENTS) then return end
  p.flags = p.flags + DEPENDENTS
  job.write(ctx, parent, p)
end

-- A parent gets one more child, if it exists and is not complete. Returns whether.
local function enter(ctx, jid, parent)
  local p = job.read(ctx, parent)
  if not p or p.state == state.COMPLETE then return false end
  join(ctx, parent, p, { ctx.now, jid })
  return true
end

-- A job waits for one that exists, by an edge. Write its record afterwards.
function M.join_by(ctx, jid, r, edge)
  local key, parent = ctx.keys.extra .. jid, edge.parent
  if call("HSETNX", key, OPEN .. parent, dependency.edge_text(edge)) == 0 then return end
  call("HSET", key, "n", dependency.count(ctx, jid, r) + 1)
  join(ctx, parent, job.read(ctx, parent), { dependency.score(ctx, edge), jid })
  r.flags = record.with(record.with(r.flags, DEPENDING), EXTRA)
end

-- A job that has an edge to `parent`, whose record is `p`, waits for that again.
function M.join_again(ctx, jid, p, edge, parent)
  edge.parent = parent
  join(ctx, parent, p, { dependency.score(ctx, edge), jid })
end

-- A job waits for any end of one that exists, and gets nothing of it.
function M.follow(ctx, jid, r, parent)
  M.join_by(ctx, jid, r, { parent = parent, policy = dependency.RUN, from = -1, length = 0 })
end

-- The open ones among the parents in the options of jobs, by jid: their record, and the
-- children that `plan` notes.
function M.open(ctx, jobs)
  local jids, names, open = {}, {}, {}
  for i = 1, #jobs do
    for _, parent in ipairs(jobs[i].opts.depends or {}) do
      if not open[parent] then
        jids[#jids + 1], names[#names + 1], open[parent] = parent, ctx.keys.job .. parent, true
      end
    end
  end
  local found = call("MGET", unpack_(names))
  for i = 1, #jids do
    local p = found[i] and ctx.record.read(found[i])
    open[jids[i]] = p and p.state ~= state.COMPLETE and { record = p, entries = {} } or nil
  end
  return open
end

-- A new job is going to wait for those of its parents that are open.
function M.plan(ctx, jid, r, parents, open)
  local fields, count = r.fields, 0
  for i = 1, #parents do
    local p = open[parents[i]]
    if p then
      local n, m = #p.entries, #fields
      p.entries[n + 1], p.entries[n + 2] = ctx.now, jid
      fields[m + 1], fields[m + 2], count = OPEN .. parents[i], "", count + 1
    end
  end
  if count == 0 then return end
  fields[#fields + 1], fields[#fields + 2] = "n", count
  r.flags = record.with(record.with(r.flags, DEPENDING), EXTRA)
end

-- A new job is going to wait by edges for jobs that are put with it, and are parents from the start; `sets` gathers
-- what comes into sorted sets: score and member in turns, by key.
function M.plan_edges(ctx, jid, r, edges, sets)
  local fields = r.fields
  for i = 1, #edges do
    local edge, n = edges[i], #fields
    fields[n + 1], fields[n + 2] = OPEN .. edge.parent, dependency.edge_text(edge)
    if edge.from >= 0 then fields[n + 3], fields[n + 4] = dependency.PLACES, "1" end
    local set = ctx.keys.dependents .. edge.parent
    local entries = sets[set] or {}
    sets[set] = entries
    entries[#entries + 1] = dependency.score(ctx, edge)
    entries[#entries + 1] = jid
  end
  fields[#fields + 1], fields[#fields + 2] = "n", #edges + dependency.count(ctx, jid, r)
  r.flags = record.with(record.with(r.flags, DEPENDING), EXTRA)
end

-- The same at once.
function M.add_edges(ctx, jid, r, edges)
  local sets = {}
  r.fields = {}
  M.plan_edges(ctx, jid, r, edges, sets)
  batch.send("HSET", ctx.keys.extra .. jid, r.fields)
  r.fields = nil
  for set, entries in pairs(sets) do call("ZADD", set, unpack_(entries)) end
end

-- The parents get these children.
function M.join_all(ctx, open)
  for jid, p in pairs(open) do
    if p.entries[1] then join(ctx, jid, p.record, p.entries) end
  end
end

-- Adds those parents that exist and are not complete; the others count as done. `known`
-- are open ones it has. Write the record afterwards.
function M.add(ctx, jid, r, parents, known)
  local is_known, fields, new = {}, {}, 0
  for i = 1, #known do is_known[known[i]] = true end
  for i = 1, #parents do
    local parent = parents[i]
    -- One that is known is entered again, in case its earlier life's children are being released.
    if enter(ctx, jid, parent) and not is_known[parent] then
      is_known[parent], new = true, new + 1
      fields[2 * new - 1], fields[2 * new] = OPEN .. parent, ""
    end
  end
  if new == 0 then return end
  fields[2 * new + 1], fields[2 * new + 2] = "n", #known + new
  batch.send("HSET", ctx.keys.extra .. jid, fields)
  r.flags = record.with(record.with(r.flags, DEPENDING), EXTRA)
end

-- Lets go of open parents, of which `left` stay. What was kept for the last one goes with it.
local function drop(ctx, jid, r, gone, left)
  if #gone == 0 then return end
  local fields = {}
  for i = 1, #gone do
    fields[i] = OPEN .. gone[i]
    call("ZREM", ctx.keys.dependents .. gone[i], jid)
  end
  if left == 0 then fields[#fields + 1], fields[#fields + 2] = "n", "w" end
  batch.send("HDEL", ctx.keys.extra .. jid, fields)
  if left > 0 then return call("HSET", ctx.keys.extra .. jid, "n", left) end
  dependency.settle(ctx, jid, r)
end

-- Divides open parents into those that are in the set and those that are not.
local function divided(open, set)
  local inside, outside = {}, {}
  for i = 1, #open do
    local side = set[open[i]] and inside or outside
    side[#side + 1] = open[i]
  end
  return inside, outside
end

local function set_of(jids)
  local set = {}
  for i = 1, #jids do set[jids[i]] = true end
  return set
end

-- Lets go of those that are parents. Returns whether any is left open.
function M.remove(ctx, jid, r, parents)
  local gone, left = divided(dependency.parents(ctx, jid, r), set_of(parents))
  drop(ctx, jid, r, gone, #left)
  return dependency.is_open(r)
end

-- A put with parents: earlier ones that are not named again are let go.
function M.replace(ctx, jid, r, parents)
  local kept, gone = divided(dependency.parents(ctx, jid, r), set_of(parents))
  drop(ctx, jid, r, gone, #kept)
  M.add(ctx, jid, r, parents, kept)
end

return M
