-- flat: put, pop and complete of plain jobs, written out by hand.
--
-- The same reads, checks and writes as the native door makes for a job that uses no
-- feature, for one root and one queue: no `ctx`, no tables of keys, no forms of order
-- and record. It measures what the layers of the core cost; nobody calls it.
local HEAD, TAIL = "<BHhHhhBI6Bc0Bc0", "<I6I6Bc0"
local FULL = "<BHhHhhBI6Bc0Bc0I6I6Bc0c0"
local WAITING, RUNNING, COMPLETE = 65, 66, 67
local FACTS, CONTROL = "<dddhHhhBddHBc0Bc0", "<dBI4d"
local IDLE, LIMITED, KNOWN = 35184372088832, 70368744177664, 140737488355328
local CLASS, START = 1099511627776, 549755813888
local call, pack, unpack_struct, sub, find, floor, byte, rep, format, concat
local root, job, waiting, leases, sequence, control, waits, runs, completed, line_key, day_key, queue_keys
local bound, known = false, {}
local sets, entries, names, held, done, samples = {}, {}, {}, {}, {}, {}

local function bind(key)
  bound, root = true, key
  call, pack, unpack_struct, sub, find = redis.call, struct.pack, struct.unpack, string.sub, string.find
  floor, byte, rep, format, concat = math.floor, string.byte, string.rep, string.format, table.concat
  job, waiting, leases, sequence = key .. "j:", key .. "w:mail", key .. "l:mail", key .. "s:mail"
  control, completed, line_key = key .. "q:mail", key .. "c", key .. "i:"
  FLAT_AT.keys = FLAT_KEYS.of_root(key)
  queue_keys = FLAT_KEYS.of_queue(FLAT_AT, "mail")
end

local function now_of(packed)
  local time = call("TIME")
  FLAT_AT.packed, FLAT_AT.settings = packed, false
  local now = time[1] * 1000 + floor(time[2] / 1000)
  FLAT_AT.now = now
  local day = floor(now / 86400000)
  waits, runs, day_key = root .. "aw:mail:" .. day, root .. "ar:mail:" .. day, queue_keys.stats .. day
  return now
end

local function open(key)
  if not bound then bind(key) end
  local packed = call("HGET", key, "h")
  local _, schema = byte(packed, 1, 2)
  if schema ~= 1 then error("schema") end
  return packed, now_of(packed)
end

local function word(text)
  if known[text] then return text end
  if #text == 0 or #text > 200 or find(text, "%c") then error("bad name") end
  known[text] = true
  return text
end

local function number(text)
  local value = tonumber(text)
  if value and value >= 0 and value % 1 == 0 then return value end
  error("bad number")
end

local function put(keys, a)
  local _, now = open(keys[1])
  local queue, priority, retries, delay = word(a[4]), number(a[5]), number(a[6]), number(a[7])
  local count = (#a - 7) / 3
  for i = 8, #a, 3 do
    if #a[i] == 0 or #a[i] > 200 or find(a[i], "%c") then error("bad jid") end
    word(a[i + 1])
  end
  local raw = call("INCRBY", sequence, count) - count
  if raw < KNOWN then
    call("ZADD", root .. "Q", "NX", now, queue)
    call("INCRBY", sequence, KNOWN)
  end
  local rest, position = raw % KNOWN, raw % IDLE + START
  if rest >= LIMITED or delay > 0 then error("not plain") end
  local head = pack("<BHhHhhBI6Bc0", WAITING, 0, priority, 0, retries, retries, 0, now, #queue, queue)
  if count == 1 then
    local klass = a[9]
    if call("SETNX", job .. a[8], head .. pack("Bc0", #klass, klass) .. a[10]) == 0 then return { 0 } end
    call("ZADD", waiting, position + 1 - priority * CLASS, a[8])
  else
    local n, klass, start = 0, nil, nil
    for i = 8, #a, 3 do
      if #a[i + 2] > 512 then error("long") end
      if a[i + 1] ~= klass then
        klass = a[i + 1]
        start = head .. pack("Bc0", #klass, klass)
      end
      position = position + 1
      sets[n + 1], sets[n + 2] = job .. a[i], start .. a[i + 2]
      entries[n + 1], entries[n + 2] = position - priority * CLASS, a[i]
      n = n + 2
    end
    if call("MSETNX", unpack(sets, 1, n)) == 0 then return { 0 } end
    call("ZADD", waiting, unpack(entries, 1, n))
  end
  if rest % LIMITED >= IDLE then error("idle") end
  return { count }
end

local function grant(bytes, score, now, worker, ends, length, out, jid)
  local state, flags, priority, attempts, retries, remaining, losses, created, queue, klass, start =
    unpack_struct(HEAD, bytes)
  if flags ~= 0 or state ~= WAITING or attempts ~= 0 then error("not plain") end
  local body, m, k, n = sub(bytes, start), #queue, #klass, #out
  out[n + 1], out[n + 2] = jid, pack(FACTS, ends, length, now, priority, 1, retries, remaining, losses, created,
    created, 0, m, queue, k, klass)
  out[n + 3], out[n + 4] = body, ""
  return pack(FULL, RUNNING, 0, priority, 1, retries, remaining, losses, created, m, queue, k, klass, now,
    score + priority * CLASS, #worker, worker, body), created
end

local function keep(line, count, now, jids)
  call("SET", line_key .. line, pack("<d", count) .. pack("<d", now) .. jids, "PX", 60000)
end

local function pop(keys, a)
  local packed, now = open(keys[1])
  local worker, line, count, want = word(a[1]), word(a[2]), number(a[3]), number(a[4])
  number(a[5])
  word(a[6])
  local kept = call("GET", line_key .. line)
  if kept and unpack_struct("<d", kept) >= count then error("again") end
  local due, flags = 1 / 0, 0
  local stored = call("GET", control)
  if stored then due, flags = unpack_struct(CONTROL, stored) end
  if flags ~= 0 or due <= now then error("not plain") end
  local length = unpack_struct("<d", packed, 33)
  local ends, out = now + length, { -1, nil, nil, nil, nil }
  if want == 1 then
    local ready = call("ZPOPMIN", waiting)
    local key = job .. ready[1]
    local new, since = grant(call("GET", key), ready[2], now, worker, ends, length, out, ready[1])
    call("SET", key, new)
    call("ZADD", leases, ends, ready[1])
    if call("APPEND", waits, pack("<d", now - since)) >= 4096 then FLAT_STATS.fold(waits, day_key, "wait") end
  else
    local ready, text = call("ZPOPMIN", waiting, want), format("%.0f", ends)
    local n = #ready / 2
    for i = 1, n do names[i] = job .. ready[2 * i - 1] end
    local found = call("MGET", unpack(names, 1, n))
    for i = 1, n do
      local jid = ready[2 * i - 1]
      local new, since = grant(found[i], ready[2 * i], now, worker, ends, length, out, jid)
      sets[2 * i - 1], sets[2 * i], held[2 * i - 1], held[2 * i] = names[i], new, text, jid
      samples[i] = now - since
    end
    call("MSET", unpack(sets, 1, 2 * n))
    call("ZADD", leases, unpack(held, 1, 2 * n))
    if call("APPEND", waits, pack(rep("d", n), unpack(samples, 1, n))) >= 4096 then
      FLAT_STATS.fold(waits, day_key, "wait")
    end
  end
  if ends < due then
    due = ends
    call("SET", control, pack(CONTROL, due, flags, 0, 1 / 0))
  end
  out[1] = due - now
  if want == 1 then
    keep(line, count, now, out[2])
  else
    local jids = {}
    for i = 2, #out, 4 do jids[#jids + 1] = out[i] end
    keep(line, count, now, concat(jids, "\n"))
  end
  return out
end

local function complete(bytes, worker, token, now)
  local state, flags, priority, attempts, retries, _, losses, created, queue, klass, start = unpack_struct(HEAD, bytes)
  if flags ~= 0 or state ~= RUNNING then error("not plain") end
  local popped, _, holder, body = unpack_struct(TAIL, bytes, start)
  if popped ~= token or holder ~= worker then error("lost") end
  return pack(FULL, COMPLETE, 0, priority, attempts, retries, retries, losses, created, #queue, queue, #klass, klass,
    popped, now, #worker, worker, sub(bytes, body)), popped
end

local function settle(keys, a)
  local _, now = open(keys[1])
  local worker, n = word(a[1]), (#a - 1) / 5
  if n == 1 then
    local key = job .. a[2]
    local new, popped = complete(call("GET", key), worker, tonumber(a[3]), now)
    call("ZREM", leases, a[2])
    call("SET", key, new)
    if call("APPEND", runs, pack("<d", now - popped)) >= 4096 then FLAT_STATS.fold(runs, day_key, "run") end
    FLAT_RETENTION.trim(FLAT_AT, call("RPUSH", completed, a[2]), 1)
    return { 1 }
  end
  for i = 1, n do names[i] = job .. a[5 * i - 3] end
  local found = call("MGET", unpack(names, 1, n))
  for i = 1, n do
    local jid = a[5 * i - 3]
    local new, popped = complete(found[i], worker, tonumber(a[5 * i - 2]), now)
    sets[2 * i - 1], sets[2 * i], done[i], samples[i] = names[i], new, jid, now - popped
  end
  call("ZREM", leases, unpack(done, 1, n))
  if call("APPEND", runs, pack(rep("d", n), unpack(samples, 1, n))) >= 4096 then
    FLAT_STATS.fold(runs, day_key, "run")
  end
  call("MSET", unpack(sets, 1, 2 * n))
  FLAT_RETENTION.trim(FLAT_AT, call("RPUSH", completed, unpack(done, 1, n)), n)
  return { n }
end

local function register(name, run)
  redis.register_function("flat_" .. name, function(keys, a)
    FLAT_READY()
    return run(keys, a)
  end)
end
register("put", put)
register("pop", pop)
register("complete", settle)
