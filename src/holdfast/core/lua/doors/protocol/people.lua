-- people: workers as they are listed, failed jobs back to work, queues forgotten.
local late = require("base.late")
local keys = require("base.keys")
local job_text = require("doors.protocol.job_text")
local words = require("doors.protocol.words")
local failure = require("nouns.failure")
local leaving = require("nouns.leaving")
local worker = require("nouns.worker")
local holding = require("verbs.holding")
local unfail = require("verbs.unfail")
local M = {}

local LONGEST = 8640000000 -- ms: what ends later than in 100 days is not listed

local encode
late.bind(function() encode = cjson.encode end)

-- Old workers go before any are listed.
local function tidy(at)
  while worker.sweep(at) > 0 do end
end

local function count_text(at, look, name)
  return '{"name":' .. encode(name) .. ',"jobs":' .. #look(name, at.now, at.now + LONGEST) ..
    ',"stalled":' .. #look(name, 0, at.now) .. "}"
end

local function all_counts(at, empty)
  tidy(at)
  local texts, names, look = {}, worker.names(at), holding.within(at)
  for i = 1, #names do texts[i] = count_text(at, look, names[i]) end
  return job_text.list(texts, empty)
end

M["workers.counts"] = function(at) return all_counts(at, "[]") end

M["worker.jobs"] = function(at, args)
  local name = args[3]
  if not name then return all_counts(at, "{}") end
  tidy(at)
  local look = holding.within(at)
  return '{"jobs":' .. job_text.names(look(name, at.now, at.now + LONGEST), "{}") ..
    ',"stalled":' .. job_text.names(look(name, 0, at.now), "{}") .. "}"
end

M["worker.forget"] = function(at, args)
  words.text(args, 3, "worker.forget(): no worker provided")
  for i = 3, #args do worker.forget(at, args[i]) end
end

M["queue.forget"] = function(at, args)
  words.text(args, 3, words.NO_QUEUE)
  for i = 3, #args do leaving.forget(at, keys.of_queue(at, args[i])) end
end

M["queue.unfail"] = function(at, args)
  local name = words.text(args, 3, 'queue.unfail(): Arg "queue" missing')
  local group = words.text(args, 4, 'Unfail(): Arg "group" missing')
  local count = words.whole(args, 5, 25, 'Unfail(): Arg "count" not a number')
  if count <= 0 then
    if not at.accent.unfails_any then words.refuse('Unfail(): Arg "count" must be greater than zero') end
    count = failure.size(at, group) + count
  end
  return count > 0 and unfail.run(at, name, group, count) or 0
end

return M
