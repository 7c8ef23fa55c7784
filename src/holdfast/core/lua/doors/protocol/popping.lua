-- popping: queue.pop and queue.peek.
local late = require("base.late")
local keys = require("base.keys")
local words = require("doors.protocol.words")
local job_text = require("doors.protocol.job_text")
local job = require("nouns.job")
local spawning = require("nouns.spawning")
local timer = require("nouns.timer")
local pop = require("verbs.pop")
local M = {}

local ROW = 4 -- values of a row, as the native one has: jid, -, data, record

local call, concat
late.bind(function() call, concat = redis.call, table.concat end)

-- Where the usual grant makes no record, the row is what a native client gets.
local function row(at, out, jid, r)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = jid, "", job.body(at, jid, r), r
end

M["queue.pop"] = function(at, args)
  local name = words.text(args, 3, words.NO_QUEUE)
  local worker = words.text(args, 4, 'Pop(): Arg "worker" missing')
  local want = words.whole(args, 5, nil, 'Pop(): Arg "' .. at.accent.limit .. '" missing or not a number')
  local out, texts = {}, {}
  local give = {
    worker = worker, lease = 0, out = out, row = row, -- and what is filled in on the way
    spent = 0, patience = 0, chores = 0, ends = 0, length = 0, limited = false, least = 0, aside = 0, cut = false,
    room = 0,
  }
  pop.run(at, give, want, { name, 0 }, 1, 2)
  local last = #out - ROW + 1
  for i = 1, last, ROW do
    local r = out[i + 3]
    texts[#texts + 1] = job_text.of(at, out[i], type(r) == "table" and r or job.read(at, out[i]),
      i == 1 and "[" or ",", i == last and "]" or "")
  end
  if last == 1 then return texts[1] end
  return texts[1] and concat(texts) or at.accent.empty_list
end

-- The jids from `offset` on: lost leases, then the ready ones. There are none before the first.
local function seen(at, queue, offset, count, lost)
  if offset < 0 then return {} end
  local jids = call("ZRANGE", queue.leases, "-inf", at.now, "BYSCORE", "LIMIT", offset, count)
  if #jids == count then return jids end
  local first = offset > lost and offset - lost or 0
  for _, member in ipairs(call("ZRANGE", queue.waiting, first, first + count - #jids - 1)) do
    jids[#jids + 1] = at.order.jid(member)
  end
  return jids
end

M["queue.peek"] = function(at, args)
  local queue = keys.of_queue(at, words.text(args, 3, words.NO_QUEUE))
  local offset = words.whole(args, 4, nil, 'Peek(): Arg "offset" missing or not a number')
  local count = words.whole(args, 5, nil, 'Peek(): Arg "' .. at.accent.limit .. '" missing or not a number')
  if count <= 0 then return at.accent.empty_list end
  local lost, texts = call("ZCOUNT", queue.leases, "-inf", at.now), {}
  local most = offset + count - math.min(lost, offset + count)
  spawning.run(at, queue, most)
  timer.promote(at, queue, most)
  for _, jid in ipairs(seen(at, queue, offset, count, lost)) do
    local r = job.read(at, jid)
    if r then texts[#texts + 1] = job_text.of(at, jid, r) end
  end
  return job_text.list(texts, at.accent.empty_list)
end

return M
