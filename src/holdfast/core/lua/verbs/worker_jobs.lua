-- worker_jobs: which jobs a worker holds. Writes nothing.
--
-- Nothing is kept for this: it looks at the leases of the known queues, some in each
-- call, and continues from a cursor. A lease whose loss was noticed has no holder any more, and
-- those of a worker that counts as gone are left out.
local batch = require("base.batch")
local keys = require("base.keys")
local record = require("base.record")
local refuse = require("base.refuse")
local text = require("base.text")
local state = require("nouns.job.state")
local worker_of = require("nouns.lease.worker")
local M = {}

M.MOST = 500 -- leases looked at in one call; a queue counts as one
local PAGES = 20 -- of that many leases, looked at where all are wanted at once
local QUEUES = 100 -- read at once
local BETWEEN = "\n" -- no name holds a control character

-- A cursor names the queue under way, by (since, name), and the last lease seen of it, by
-- (end, jid), which are "" when the queue is done with. Nothing for a text that is none.
local FORM = "^([^\n]+)\n([^\n]+)\n([^\n]*)\n([^\n]*)$"
function M.place(cursor)
  if cursor == "" then return {} end
  local since, name, ends, jid = match(cursor, FORM)
  if not text.is_score(since) or ends ~= "" and not text.is_score(ends) then return nil end
  return { since = since, name = name, ends = ends ~= "" and ends or nil, jid = jid }
end

local function cursor_of(place)
  return concat({ place.since, place.name, place.ends or "", place.ends and place.jid or "" }, BETWEEN)
end

local function is_held(r, worker)
  return r.state == state.RUNNING and not record.has(r.flags, record.FLAG.NOTICED)
    and (worker == "" or r.worker == worker)
end

-- Appends what of the next leases of a queue, at most `most`, the worker holds. Returns how
-- many leases it looked at.
local function look(ctx, place, worker, most, found, is_gone)
  local queue = keys.of_queue(ctx, place.name)
  local page = batch.page(queue.leases, 0, call("ZCARD", queue.leases), place.ends, place.jid, most)
  local names, n = {}, #page / 2
  if n == 0 then return 0 end
  for i = 1, n do names[i] = ctx.keys.job .. page[2 * i - 1] end
  local records = call("MGET", unpack_(names))
  for i = 1, n do
    local r = records[i] and ctx.record.read(records[i])
    if r and is_held(r, worker) and not is_gone(r.worker, r.popped) then
      local ends = tonumber(page[2 * i])
      found[#found + 1] = { page[2 * i - 1], place.name, ends, ends <= ctx.now and 1 or 0, r.worker, r.popped }
    end
  end
  place.jid, place.ends = page[2 * n - 1], page[2 * n]
  return n
end

-- The queues still to be looked at: (name, since) pairs, the one under way first. And
-- whether there may be more.
local function ahead(ctx, place)
  local set = ctx.keys.queues
  local page = batch.page(set, 0, call("ZCARD", set), place.since, place.name, QUEUES)
  local more = #page == 2 * QUEUES
  if place.ends then
    table.insert(page, 1, place.since)
    table.insert(page, 1, place.name)
  end
  return page, more
end

-- What `worker` ("" for any) holds: {cursor, {jid, queue, end, stalled 0 or 1, worker, popped} …}.
-- `place` is where to continue; the cursor is "" when all was seen.
function M.run(ctx, worker, place, most)
  local found, left, reply, is_gone = {}, most, { "" }, worker_of.gone(ctx)
  local page, more = ahead(ctx, place)
  for i = 1, #page, 2 do
    if place.name ~= page[i] then place = { name = page[i], since = page[i + 1] } end
    local n = look(ctx, place, worker, left, found, is_gone)
    local is_full = n == left
    if not is_full then place.ends = nil end
    left = left - n - 1
    if left <= 0 then
      more = more or is_full or page[i + 2]
      break
    end
  end
  if more then reply[1] = cursor_of(place) end
  for i = 1, #found do reply[i + 1] = found[i] end
  return reply
end

local function is_later(a, b) return a[3] > b[3] or a[3] == b[3] and a[1] > b[1] end

-- All leases, as rows by worker.
local function by_worker(ctx)
  local found, cursor, pages = {}, "", 0
  repeat
    pages = pages + 1
    if pages > PAGES then refuse.call("TOO_MANY", "there are too many leases to list in one call") end
    local reply = M.run(ctx, "", M.place(cursor), M.MOST)
    cursor = reply[1]
    for i = 2, #reply do
      local name = reply[i][5]
      found[name] = found[name] or {}
      found[name][#found[name] + 1] = reply[i]
    end
  until cursor == ""
  for _, rows in pairs(found) do table.sort(rows, is_later) end
  return found
end

-- A function that returns which jobs a worker holds whose leases end within two moments, the
-- latest first.
function M.within(ctx)
  if ctx.workers then
    return function(worker, first, last) return ctx.workers.holds(ctx, worker, first, last) end
  end
  local found = by_worker(ctx)
  return function(worker, first, last)
    local jids, rows = {}, found[worker] or {}
    for i = 1, #rows do
      if rows[i][3] >= first and rows[i][3] <= last then jids[#jids + 1] = rows[i][1] end
    end
    return jids
  end
end

return M
