-- workers: workers as they are listed, failed jobs back to work, queues forgotten.
local keys = require("base.keys")
local job_text = require("doors.protocol.job_text")
local arguments = require("doors.protocol.arguments")
local failure = require("nouns.failure.failure")
local removal = require("nouns.queue.queue_removal")
local worker = require("nouns.lease.worker")
local worker_jobs = require("verbs.worker_jobs")
local unfail = require("verbs.unfail")
local M = {}

local LONGEST = 8640000000 -- ms: what ends later than in 100 days is not listed

-- Old workers go before any are listed.
local function tidy(ctx)
  while worker.sweep(ctx) > 0 do end
end

local function count_text(ctx, look, name)
  return '{"name":' .. encode(name) .. ',"jobs":' .. #look(name, ctx.now, ctx.now + LONGEST) ..
    ',"stalled":' .. #look(name, 0, ctx.now) .. "}"
end

local function all_counts(ctx, empty)
  tidy(ctx)
  local texts, names, look = {}, worker.names(ctx), worker_jobs.within(ctx)
  for i = 1, #names do texts[i] = count_text(ctx, look, names[i]) end
  return job_text.list(texts, empty)
end

M["workers.counts"] = function(ctx) return all_counts(ctx, "[]") end

M["worker.jobs"] = function(ctx, args)
  local name = args[3]
  if not name then return all_counts(ctx, "{}") end
  tidy(ctx)
  local look = worker_jobs.within(ctx)
  return '{"jobs":' .. job_text.names(look(name, ctx.now, ctx.now + LONGEST), "{}") ..
    ',"stalled":' .. job_text.names(look(name, 0, ctx.now), "{}") .. "}"
end

M["worker.forget"] = function(ctx, args)
  arguments.text(args, 3, "worker.forget(): no worker provided")
  for i = 3, #args do worker.forget(ctx, args[i]) end
end

M["queue.forget"] = function(ctx, args)
  arguments.text(args, 3, arguments.NO_QUEUE)
  for i = 3, #args do removal.forget(ctx, keys.of_queue(ctx, args[i])) end
end

M["queue.unfail"] = function(ctx, args)
  local name = arguments.text(args, 3, 'queue.unfail(): Arg "queue" missing')
  local group = arguments.text(args, 4, 'Unfail(): Arg "group" missing')
  local count = arguments.whole(args, 5, 25, 'Unfail(): Arg "count" not a number')
  if count <= 0 then
    if not ctx.dialect.unfails_any then arguments.refuse('Unfail(): Arg "count" must be greater than zero') end
    count = failure.size(ctx, group) + count
  end
  return count > 0 and unfail.run(ctx, name, group, count) or 0
end

return M
