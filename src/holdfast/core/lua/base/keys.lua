-- keys: the only file that knows how a key is written.
--
-- Every key starts with the root, then letters, a colon and the user's text, so no name a user picks can collide with
-- another key. The names in the tables below are pure functions of their arguments. What is noted there of data (`day`,
-- `booked`, `minute_ends`, `oldest_end`) goes with the root that the data belong to: see `belong_to`.
local M = {}

local MOST_ROOTS, MOST_QUEUES = 500, 4000
local roots, root_count = {}, 0

local function native(root)
  return {
    root = root, job = root .. "j:", body = root .. "b:", extra = root .. "x:",
    completed = root .. "c", line = root .. "i:", result = root .. "a:", stack_channel = root .. "e:s:",
    queues = root .. "Q", topics = root .. "tt", config = root .. "C", groups = root .. "F", group = root .. "f:",
    worker_channel = root .. "e:w:", result_channel = root .. "e:r:", channel = root .. "e:", changes = root .. "e:c",
    message_channel = root .. "e:m",
    holders = root .. "h:", pending = root .. "p:", freed = root .. "hx:", limits = root .. "H", upkeep = root .. "U",
    tagged = root .. "g:", tag_counts = root .. "G", dependents = root .. "d:", releasing = root .. "u",
    following = root .. "uf",
    template = root .. "r:", workers = root .. "W", worker_facts = root .. "v:", versions = root .. "V",
    audit = root .. "A",
    messages = root .. "tb:", queued = root .. "tq:", reserved = root .. "tr:", topic_wake_key = root .. "tn:",
    topic_idle = root .. "ti", marks = root .. "K",
    ready = root .. "R", timer = root .. "T", fleets = root .. "N", fleet_wake = root .. "N:",
    ended = root .. "E", ended_mark = root .. "E:", unique = root .. "X:",
    plan = root .. "L:", plans = root .. "L", declared = root .. "r",
    flow = root .. "J:", flows = root .. "J",
    operations = root .. "O", operation = root .. "O:", operation_changed = root .. "Ou:",
    operation_refused = root .. "Or:", identifiers = root .. "qi", priorities = root .. "qp",
    by_queue = {}, queue_count = 0,
  }
end

-- The root that programs of many languages share: the keys they use themselves are
-- written as their protocol has them (its section 9).
M.SHARED = "ql:hf:"

-- A table for each call of a script, for each root in a library.
function M.shared()
  return {
    root = M.SHARED, is_shared = true,
    job = "ql:hf:j:", body = "ql:hf:b:", extra = "ql:hf:x:", completed = "ql:hf:c", line = "ql:hf:i:",
    result = "ql:hf:a:", queues = "ql:hf:Q", config = "ql:hf:C", groups = "ql:hf:F", group = "ql:hf:f:",
    failure_calls = "ql:hf:F#", workers = "ql:hf:W", held = "ql:hf:L:", marks = "ql:hf:K",
    holders = "ql:hf:h:", pending = "ql:hf:p:", throttle = "ql:th:",
    channel = "ql:", log = "ql:log", worker_channel = "ql:w:", result_channel = "ql:hf:e:r:",
    stack_channel = "ql:hf:e:s:",
    tagged = "ql:hf:g:", tag_counts = "ql:tags", dependents = "ql:hf:d:", releasing = "ql:hf:u",
    template = "ql:hf:r:", worker_facts = "ql:hf:v:", versions = "ql:hf:V", audit = "ql:hf:A", changes = "ql:hf:e:c",
    limits = "ql:hf:H",
    identifiers = "ql:qp:identifiers", old_identifiers = "qmore:dynamic",
    priorities = "ql:qp:priorities", old_priorities = "qmore:priority",
    older_core = "ql:queues", older_settings = "ql:config", -- where others list queues; what they read at put and pop
    by_queue = {}, queue_count = 0,
  }
end

-- Those of a queue: what stands before its name, and behind it. A call needs few of them.
local BEFORE = {
  control = "ql:hf:q:", waiting = "ql:q:", leases = "ql:q:", sequence = "ql:hf:s:", wait_log = "ql:hf:aw:",
  run_log = "ql:hf:ar:", scheduled = "ql:q:", recurring = "ql:q:", throttled = "ql:hf:P:", depends = "ql:hf:D:",
  failed = "ql:hf:fq:", stats = "ql:hf:z:", wake_key = "ql:hf:n:", options = "ql:hf:o:", tallies = "ql:hf:k:",
  minutes = "ql:hf:m:",
}
local BEHIND = {
  waiting = "-work", leases = "-locks", scheduled = "-scheduled", recurring = "-recur", wait_log = ":", run_log = ":",
  stats = ":",
}

local function made_key(home, field)
  local before = BEFORE[field]
  if not before then return nil end
  local key = before .. home.name .. (BEHIND[field] or "")
  home[field] = key
  return key
end

function M.of_root(root)
  local keys = roots[root]
  if keys then return keys end
  if root_count >= MOST_ROOTS then roots, root_count = {}, 0 end
  keys = root == M.SHARED and M.shared() or native(root)
  roots[root], root_count = keys, root_count + 1
  return keys
end

-- The root of these keys has this text, and this epoch. With another epoch it is another root under the same name (the
-- store was flushed, or it is one of another database): nothing that is known of data is true of it.
function M.belong_to(keys, packed, epoch)
  keys.packed = packed
  if keys.epoch == epoch then return end
  keys.epoch, keys.oldest_end = epoch, nil
  keys.by_queue, keys.queue_count = {}, 0
end

local LETTERS = { waiting = "w:", control = "q:", tallies = "k:" }

local function native_queue(root, name)
  return {
    name = name, own = "ql:q:" .. name,
    waiting = root .. "w:" .. name, leases = root .. "l:" .. name, sequence = root .. "s:" .. name,
    control = root .. "q:" .. name, wake_key = root .. "n:" .. name, scheduled = root .. "t:" .. name,
    recurring = root .. "y:" .. name, depends = root .. "D:" .. name, throttled = root .. "P:" .. name,
    failed = root .. "fq:" .. name, options = root .. "o:" .. name, stats = root .. "z:" .. name .. ":",
    tallies = root .. "k:" .. name, minutes = root .. "m:" .. name,
    wait_log = root .. "aw:" .. name .. ":", run_log = root .. "ar:" .. name .. ":", day = 0 / 0,
    minute_ends = 0,
  }
end

-- One key of a queue, in a root of our own; where it is the only one that is needed.
function M.key_of(ctx, field, name) return ctx.keys.root .. LETTERS[field] .. name end

local function shared_queue(name)
  local queue = {
    name = name, own = "ql:q:" .. name, day = 0 / 0, minute_ends = 1 / 0, booked = false, wait_today = false,
    run_today = false,
  }
  return setmetatable(queue, { __index = made_key })
end

-- The keys of one queue. `today` fields are filled in by `on_day`; `minute_ends` is when
-- its next line of tallies is due.
function M.of_queue(ctx, name)
  local keys = ctx.keys
  local queue = keys.by_queue[name]
  if queue then return queue end
  if keys.queue_count >= MOST_QUEUES then keys.by_queue, keys.queue_count = {}, 0 end
  queue = keys.is_shared and shared_queue(name) or native_queue(keys.root, name)
  keys.by_queue[name], keys.queue_count = queue, keys.queue_count + 1
  return queue
end

-- Makes `wait_today` and `run_today` name the sample logs of a day; samples of `day`
-- are booked on `booked`.
function M.on_day(queue, day, booked)
  queue.day, queue.booked = day, booked
  queue.wait_today, queue.run_today = queue.wait_log .. booked, queue.run_log .. booked
end

-- What is known of its day and minute was deleted.
function M.forget(queue)
  queue.day, queue.minute_ends = 0 / 0, 0
end

-- Whether the clock of this root's namespace may be stopped.
function M.may_be_test(root) return root:sub(1, 8) == "hf:{test" end

return M
