-- options: the options of a put, beyond what the record of the job holds.
--
-- Packed in extra field `o` (flag OPTIONS), each absent unless given: backoff
-- {kind, first, most, jitter}, expires (do not start after, ms), limit (of a run, ms),
-- keep (of the result, ms), losses (how many a job with budgets of its own may have, if not
-- the default), trace (of the program that put it, as that wrote it), needs (the least level of a worker that may
-- run it).
local record = require("base.record")
local extra = require("nouns.job.extra")
local M = {}

local OPTIONS, EXPIRING = record.FLAG.OPTIONS, record.FLAG.EXPIRING

M.LOSSES = 3 -- the default
local NONE = {}
local TO_SETTLE = 5000 -- ms in which a worker can report that a run took too long, before its lease ends
-- Those that stay with the job until a put gives another, and those that belong to one put.
local KEPT, ONCE = { "backoff", "limit", "keep", "needs" }, { "expires", "trace" }
local VALUES = { "trace", "expires", "limit", "keep", "losses", "needs", "unique_key", "unique_for" } -- one word each

-- The options of a job, as a table, which is read once for each record.
function M.of(ctx, jid, r)
  if not record.has(r.flags, OPTIONS) then return NONE end
  if r.options then return r.options end
  local packed = extra.get(ctx, jid, r, "o")
  r.options = packed and mp_unpack(packed) or NONE
  return r.options
end

-- Options as (option, value) pairs, in the words of a put; a job's `expires` is a moment.
function M.pairs(found)
  local flat = {}
  if found.backoff then flat[1], flat[2] = "backoff", format("%s:%.0f:%.0f:%.0f", unpack_(found.backoff)) end
  for _, name in ipairs(VALUES) do
    if found[name] then flat[#flat + 1], flat[#flat + 2] = name, found[name] end
  end
  return flat
end

function M.flat(ctx, jid, r) return M.pairs(M.of(ctx, jid, r)) end

-- When the lease of a job with options ends that would end at `ends`.
function M.lease_end(ctx, jid, r, ends)
  local limit = M.of(ctx, jid, r).limit
  return limit and r.popped + limit + TO_SETTLE < ends and r.popped + limit + TO_SETTLE or ends
end

-- Whether a put gives any.
local function is_any(opts)
  for i = 1, #KEPT do if opts[KEPT[i]] then return true end end
  return opts[ONCE[1]] or opts[ONCE[2]]
end

-- What of the options of a put a template keeps for its jobs. `expires` counts from each put.
function M.of_template(opts, expires)
  local own = { expires = expires, unique_key = opts.unique_key, unique_for = opts.unique_for }
  for _, name in ipairs(KEPT) do own[name] = opts[name] end
  return own
end

-- Takes over what is given; what is not stays as it was, but for the moment a job
-- must not start after and the trace, which belong to one put. `losses` (nil: as before,
-- false: none) goes with the retries of a put. Write the record afterwards.
function M.set(ctx, jid, r, opts, losses)
  local own = losses and losses ~= M.LOSSES
  if not record.has(r.flags, OPTIONS) and not own and not is_any(opts) then return end
  local was = M.of(ctx, jid, r)
  if losses == nil then losses, own = was.losses, was.losses end
  r.options = nil
  r.flags = record.without(r.flags, EXPIRING)
  if opts.expires then r.flags = r.flags + EXPIRING end
  local found = {
    expires = opts.expires and ctx.now + opts.expires or nil, trace = opts.trace, losses = own and losses or nil,
  }
  for _, name in ipairs(KEPT) do found[name] = opts[name] or was[name] end
  if next(found) then
    extra.set(ctx, jid, r, "o", mp_pack(found))
    r.flags = record.with(r.flags, OPTIONS)
  elseif was ~= NONE then
    extra.clear(ctx, jid, r, "o")
    r.flags = r.flags - OPTIONS
  end
end

return M
