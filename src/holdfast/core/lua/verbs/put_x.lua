-- put_x: jobs come into a queue that use what `put` does not know: tags, throttles,
-- dependencies and options. Each is looked at by itself.
local keys = require("base.keys")
local refuse = require("base.refuse")
local burden = require("nouns.burden")
local circle = require("nouns.circle")
local family = require("nouns.family")
local job = require("nouns.job")
local put_new = require("verbs.put_new")
local put_one = require("verbs.put_one")
local M = {}

-- A parent of this call that was refused and is not there. Who waits for it would wait for
-- nobody.
local function missing(ctx, refused, opts)
  for _, parent in ipairs(next(refused) and opts.depends or {}) do
    if refused[parent] and not job.read(ctx, parent) then return parent end
  end
end

-- `closes` is the parent with which the job closes a circle, if it does.
local function put(ctx, target, mode, one, closes, refused)
  local code
  local parent = closes or missing(ctx, refused, one.opts)
  if closes then
    code = circle.between(one.jid, closes)
  elseif parent then
    code = refuse.job("DEPENDENCY_REFUSED", one.jid .. " waits for " .. parent .. ", which was refused")
  else
    code = put_one.run(ctx, target, mode, one.jid, one.klass, one.data, one.opts)
  end
  if code and code ~= "again" then refused[one.jid] = true end
  return code
end

-- `jobs` are tables of jid, klass, data, wish; `jobs.depend` says whether any waits for
-- others; `losses` as for `put`. Returns as `put` does.
function M.run(ctx, mode, name, priority, retries, delay, jobs, losses)
  local target = { queue = keys.of_queue(ctx, name), priority = priority, retries = retries, delay = delay,
    losses = losses, limited = nil, is_put = true, room = nil }
  local added = mode ~= "old" and put_new.run(ctx, target, jobs)
  if added then return added end
  target.limited, target.first = nil, nil
  if put_one.MOVES[mode] then burden.check(ctx, jobs) end
  local reply, codes, refused, order, circles = { 0 }, {}, {}, nil, {}
  if jobs.depend then order, circles = family.in_order(jobs) end
  for n = 1, #jobs do
    local i = order and order[n] or n
    codes[i] = put(ctx, target, mode, jobs[i], circles[i], refused)
  end
  for i = 1, #jobs do
    if codes[i] then
      reply[#reply + 1], reply[#reply + 2] = i - 1, codes[i]
    else
      reply[1] = reply[1] + 1
    end
  end
  return reply
end

return M
