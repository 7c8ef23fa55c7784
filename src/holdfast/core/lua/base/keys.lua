-- keys: the only file that spells a key.
--
-- Every key starts with the root, then letters, a colon and the user's text, so no name a user picks can collide with
-- another key. The tables below are pure functions of their arguments: caching them cannot go wrong after a failover.
local M = {}

local MOST_ROOTS, MOST_QUEUES = 500, 4000
local roots, root_count = {}, 0

local function native(root)
  return {
    root = root, job = root .. "j:", body = root .. "b:", extra = root .. "x:",
    completed = root .. "c", line = root .. "i:", result = root .. "a:", answers = root .. "e:s:",
    queues = root .. "Q", topics = root .. "tt", config = root .. "C", groups = root .. "F", group = root .. "f:",
    worker_news = root .. "e:w:", result_news = root .. "e:r:", news = root .. "e:", changes = root .. "e:c",
    holders = root .. "h:", pending = root .. "p:", freed = root .. "hx:", limits = root .. "H", tending = root .. "U",
    tagged = root .. "g:", tag_counts = root .. "G", dependents = root .. "d:", releasing = root .. "u",
    template = root .. "r:", workers = root .. "W", worker_facts = root .. "v:", audit = root .. "A",
    messages = root .. "tb:", queued = root .. "tq:", reserved = root .. "tr:", topic_bell = root .. "tn:",
    topic_idle = root .. "ti", marks = root .. "K",
    ready = root .. "R", timer = root .. "T", fleets = root .. "N", fleet_wake = root .. "N:",
    ended = root .. "E", ended_mark = root .. "E:", identifiers = root .. "qi", priorities = root .. "qp",
    by_queue = {}, queue_count = 0,
  }
end

-- The root that programs of many languages share: the keys they use themselves are
-- spelled as their protocol says (its section 9).
M.SHARED = "ql:hf:"

-- A script has these as constants wherever it says `at.keys.root` and the like.
local FIXED = {
  root = "ql:hf:",
  job = "ql:hf:j:", body = "ql:hf:b:", extra = "ql:hf:x:", completed = "ql:hf:c", line = "ql:hf:i:",
  result = "ql:hf:a:", queues = "ql:hf:Q", config = "ql:hf:C", groups = "ql:hf:F", group = "ql:hf:f:",
  failure_calls = "ql:hf:F#", workers = "ql:hf:W", held = "ql:hf:L:", marks = "ql:hf:K",
  holders = "ql:hf:h:", pending = "ql:hf:p:", throttle = "ql:th:",
  news = "ql:", log = "ql:log", worker_news = "ql:w:", result_news = "ql:hf:e:r:", answers = "ql:hf:e:s:",
  tagged = "ql:hf:g:", tag_counts = "ql:tags", dependents = "ql:hf:d:", releasing = "ql:hf:u", template = "ql:hf:r:",
  worker_facts = "ql:hf:v:", audit = "ql:hf:A", changes = "ql:hf:e:c", limits = "ql:hf:H",
  identifiers = "ql:qp:identifiers", old_identifiers = "qmore:dynamic",
  priorities = "ql:qp:priorities", old_priorities = "qmore:priority",
  older_core = "ql:queues", older_settings = "ql:config", -- where others list queues; what they read at put and pop
}
M.FIXED = FIXED

local function fixed(_, field) return FIXED[field] end

function M.shared()
  return setmetatable({ is_shared = true, by_queue = {}, queue_count = 0 }, { __index = fixed })
end

function M.of_root(root)
  local keys = roots[root]
  if keys then return keys end
  if root_count >= MOST_ROOTS then roots, root_count = {}, 0 end
  keys = root == M.SHARED and M.shared() or native(root)
  roots[root], root_count = keys, root_count + 1
  return keys
end

local LETTERS = { waiting = "w:", control = "q:", tallies = "k:" }

local function native_queue(root, name)
  return {
    name = name, own = "ql:q:" .. name,
    waiting = root .. "w:" .. name, leases = root .. "l:" .. name, sequence = root .. "s:" .. name,
    control = root .. "q:" .. name, bell = root .. "n:" .. name, scheduled = root .. "t:" .. name,
    recurring = root .. "y:" .. name, depends = root .. "D:" .. name, throttled = root .. "P:" .. name,
    failed = root .. "fq:" .. name, options = root .. "o:" .. name, stats = root .. "z:" .. name .. ":",
    tallies = root .. "k:" .. name, minutes = root .. "m:" .. name,
    wait_log = root .. "aw:" .. name .. ":", run_log = root .. "ar:" .. name .. ":", day = 0 / 0,
    minute_ends = 0,
  }
end

-- One key of a queue, in a root of our own; where it is the only one that is needed.
function M.spell(at, field, name) return at.keys.root .. LETTERS[field] .. name end

local function shared_queue(name)
  return {
    name = name, own = "ql:q:" .. name,
    waiting = "ql:q:" .. name .. "-work", leases = "ql:q:" .. name .. "-locks",
    scheduled = "ql:q:" .. name .. "-scheduled", recurring = "ql:q:" .. name .. "-recur",
    sequence = "ql:hf:s:" .. name, control = "ql:hf:q:" .. name, bell = "ql:hf:n:" .. name,
    depends = "ql:hf:D:" .. name, throttled = "ql:hf:P:" .. name, failed = "ql:hf:fq:" .. name,
    options = "ql:hf:o:" .. name, stats = "ql:hf:z:" .. name .. ":", tallies = "ql:hf:k:" .. name,
    minutes = "ql:hf:m:" .. name, wait_log = "ql:hf:aw:" .. name .. ":", run_log = "ql:hf:ar:" .. name .. ":",
    day = 0 / 0, minute_ends = 1 / 0,
  }
end

-- The keys of one queue. `today` fields are filled in by `on_day`; `minute_ends` is when
-- its next line of tallies is due.
function M.of_queue(at, name)
  local keys = at.keys
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
