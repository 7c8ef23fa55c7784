-- pop: queue.pop and queue.peek.
local keys = require("base.keys")
local arguments = require("doors.protocol.arguments")
local job_text = require("doors.protocol.job_text")
local grants = require("nouns.lease.grant")
local job = require("nouns.job.job")
local occurrences = require("nouns.recurrence.occurrence")
local timer = require("nouns.lease.timer")
local pop = require("verbs.pop")
local M = {}

local ROW = 4 -- values of a row, as the native one has: jid, -, data, record

-- Where the straight grant makes no record, the row is what a native client gets.
local function row(ctx, out, jid, r)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, "", job.body(ctx, jid, r), r
end

M["queue.pop"] = function(ctx, args)
  local name = arguments.text(args, 3, arguments.NO_QUEUE)
  local worker = arguments.text(args, 4, 'Pop(): Arg "worker" missing')
  local want = arguments.whole(args, 5, nil, 'Pop(): Arg "' .. ctx.dialect.limit .. '" missing or not a number')
  local out, texts = {}, {}
  local grant = grants.new(worker, 0, out, row)
  pop.run(ctx, grant, want, { name, 0 }, 1, 2)
  local last = #out - ROW + 1
  for i = 1, last, ROW do
    local r = out[i + 3]
    texts[#texts + 1] = job_text.of(ctx, out[i], type(r) == "table" and r or job.read(ctx, out[i]),
      i == 1 and "[" or ",", i == last and "]" or "")
  end
  if last == 1 then return texts[1] end
  return texts[1] and concat(texts) or ctx.dialect.empty_list
end

-- The jids from `offset` on: lost leases, then the ready ones. There are none before the first.
local function seen(ctx, queue, offset, count, lost)
  if offset < 0 then return {} end
  local jids = call("ZRANGE", queue.leases, "-inf", ctx.now, "BYSCORE", "LIMIT", offset, count)
  if #jids == count then return jids end
  local first = offset > lost and offset - lost or 0
  for _, member in ipairs(call("ZRANGE", queue.waiting, first, first + count - #jids - 1)) do
    jids[#jids + 1] = ctx.order.jid(member)
  end
  return jids
end

M["queue.peek"] = function(ctx, args)
  local queue = keys.of_queue(ctx, arguments.text(args, 3, arguments.NO_QUEUE))
  local offset = arguments.whole(args, 4, nil, 'Peek(): Arg "offset" missing or not a number')
  local count = arguments.whole(args, 5, nil, 'Peek(): Arg "' .. ctx.dialect.limit .. '" missing or not a number')
  if count <= 0 then return ctx.dialect.empty_list end
  local lost, texts = call("ZCOUNT", queue.leases, "-inf", ctx.now), {}
  local most = offset + count - math.min(lost, offset + count)
  occurrences.run(ctx, queue, most)
  timer.promote(ctx, queue, most)
  for _, jid in ipairs(seen(ctx, queue, offset, count, lost)) do
    local r = job.read(ctx, jid)
    if r then texts[#texts + 1] = job_text.of(ctx, jid, r) end
  end
  return job_text.list(texts, ctx.dialect.empty_list)
end

return M
