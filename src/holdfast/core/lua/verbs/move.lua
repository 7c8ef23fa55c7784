-- move: a job is taken out of whatever state it is in and starts a new life in a
-- queue. A holder loses its lease; what is not given stays as it was, and what the job
-- waits for it keeps waiting for.
local keys = require("base.keys")
local refuse = require("base.refuse")
local cycle = require("nouns.dependency.dependency_cycle")
local dependents = require("nouns.dependency.dependents")
local members = require("nouns.flow.members")
local ending = require("nouns.job.ending")
local extra = require("nouns.job.extra")
local history = require("nouns.job.history")
local job = require("nouns.job.job")
local lease = require("nouns.lease.lease")
local placement = require("nouns.job.placement")
local queues = require("nouns.queue.queue")
local report = require("nouns.lease.report")
local state = require("nouns.job.state")
local tag = require("nouns.job.tag")
local unique = require("nouns.job.unique")
local links = require("nouns.dependency.dependency_links")
local M = {}

-- Tags, throttles and parents take the place of those there are, where any are given.
local function apply_options(ctx, queue, jid, r, opts)
  r.fields = {}
  if opts.throttles then ctx.throttles.assign(ctx, queue, jid, r, opts.throttles) end
  if opts.tags then tag.set(ctx, jid, r, opts.tags) end
  extra.flush(ctx, jid, r)
  if opts.depends then links.replace(ctx, jid, r, opts.depends) end
end

-- The other changes; "" leaves a value unchanged.
local function write(r, change)
  if change.klass ~= "" then r.klass = change.klass end
  r.retries, r.priority = tonumber(change.retries) or r.retries, tonumber(change.priority) or r.priority
end

-- What changes on the way are data, klass, priority, retries ("": nothing of it), and `opts`
-- (nil, or a table of tags, throttles, depends). `delay` is in ms. Returns the jid.
function M.run(ctx, name, delay, jid, change)
  local r, opts = job.read(ctx, jid), change.opts
  if not r then refuse.call("JOB_NOT_FOUND", jid) end
  local refused = opts and opts.depends and cycle.refusal(ctx, {}, jid, r, opts.depends)
  if refused then refuse.for_all(refused) end
  local has_ended = r.state == state.COMPLETE or r.state == state.FAILED
  local holder = has_ended and ctx.keys.unique and unique.taken_from(ctx, jid, r)
  if holder then refuse.call("NOT_UNIQUE", holder) end
  if has_ended and not (opts and opts.depends) then
    local found, problem = dependents.look_again(ctx, jid, r)
    if problem then refuse.call("WRONG_STATE", problem) end
    r = found
  end
  local queue, from = keys.of_queue(ctx, name), keys.of_queue(ctx, r.queue)
  local limited = queues.know(ctx, queue)
  if r.state == state.RUNNING then ctx.events.lock_lost(ctx, jid, r.worker) end
  lease.evict(ctx, jid, r)
  if ctx.index and from.name ~= name then ctx.index.left(ctx, from) end
  history.add(ctx, jid, r, history.PUT, name)
  if opts then apply_options(ctx, queue, jid, r, opts) end
  write(r, change)
  r.queue, r.queued, r.remaining, r.losses = name, ctx.now, r.retries, 0
  ctx.record.begin(r, ctx.now)
  report.clear(ctx, jid, r)
  job.set_body(ctx, jid, r, change.data)
  placement.settle(ctx, { queue = queue, delay = delay, limited = limited }, jid, r)
  if ctx.events.tracked then ctx.events.tracked(ctx, "put", jid, r) end
  local group = r.klass == members.KLASS and members.read(ctx, members.flow_of(jid) or "")
  if group then ending.settle_group(ctx, group) end -- all of it may have ended before
  return jid
end

return M
