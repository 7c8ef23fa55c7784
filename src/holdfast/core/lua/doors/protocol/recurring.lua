-- recurring: templates that put jobs again and again.
--
-- A template's list of throttles may be without the own one of its queue; then it says
-- `bare`, and so do its jobs.
local late = require("base.late")
local keys = require("base.keys")
local job_text = require("doors.protocol.job_text")
local words = require("doors.protocol.words")
local recurrence = require("nouns.recurrence")
local recur = require("verbs.recur")
local M = {}

local encode, floor
late.bind(function() encode, floor = cjson.encode, math.floor end)

local function number(found, key, default)
  if not found[key] then return default end
  return words.finite(found[key]) or words.refuse('Recur(): Arg "' .. key .. '" not a number')
end

-- queue.recurAtInterval queue jid klass data interval offset [key value]...
M["queue.recurAtInterval"] = function(at, args)
  local t = { queue = words.text(args, 3, words.NO_QUEUE), options = {} }
  local jid = words.text(args, 4, 'Recur(): Arg "jid" missing')
  t.klass = words.text(args, 5, 'Recur(): Arg "klass" missing')
  t.data = words.data(args, 6, 'Recur(): Arg "data" missing or not JSON')
  local interval = words.number(args, 7, 'Recur(): Arg "interval" not a number')
  local offset = words.number(args, 8, 'Recur(): Arg "offset" not a number')
  if interval <= 0 then words.refuse('Recur(): Arg "interval" must be greater than 0') end
  local found = words.pairs(args, 9, "Recur(): Odd number of additional args")
  t.tags = found.tags and words.list(found.tags, "tags") or {}
  t.interval, t.priority = interval * 1000, number(found, "priority", 0)
  t.retries, t.backlog = floor(number(found, "retries", 0)), number(found, "backlog", 0)
  t.throttles = found.throttles and words.names(found.throttles, "throttles") or {}
  return recur.run(at, jid, t, offset * 1000)
end

-- The template of that name, or a refusal.
local function template(at, args, who)
  local jid = words.text(args, 3, words.NO_JID)
  return jid, recurrence.read(at, jid) or words.refuse(who .. jid .. " does not exist")
end

local function throttles(at, t)
  local ids = t.throttles
  if not ids.bare then ids[#ids + 1] = keys.of_queue(at, t.queue).own end
  return ids
end

M["recurringJob.get"] = function(at, args)
  local jid, number_text = words.text(args, 3, words.NO_JID), job_text.number
  local t = recurrence.read(at, jid)
  return t and '{"jid":' .. encode(jid) .. ',"klass":' .. encode(t.klass) .. ',"state":"recur","queue":' ..
    encode(t.queue) .. ',"priority":' .. number_text(t.priority) .. ',"interval":' .. job_text.seconds(t.interval) ..
    ',"retries":' .. number_text(t.retries) .. ',"count":' .. number_text(t.count) .. ',"data":' .. encode(t.data) ..
    ',"tags":' .. job_text.names(t.tags, "{}") .. ',"backlog":' .. number_text(t.backlog) ..
    ',"throttles":' .. job_text.names(throttles(at, t), "{}") .. "}"
end

local function changed_number(text, key)
  return words.finite(text) or words.refuse('Recur(): Arg "' .. key .. '" must be a number')
end

-- The list without the queue's own throttle; `bare` if that was not in it.
local function without_own(at, ids, queue)
  local others, own = { bare = true }, keys.of_queue(at, queue).own
  for i = 1, #ids do
    if ids[i] == own then others.bare = nil else others[#others + 1] = ids[i] end
  end
  return others
end

-- What a pair changes, noted in `to`; `home` is the queue the template is in.
local function change(at, to, key, value, home)
  if key == "priority" or key == "retries" or key == "interval" then
    local wanted = changed_number(value, key)
    if key == "retries" then wanted = floor(wanted) end
    if key == "interval" and wanted <= 0 then words.refuse('Recur(): Arg "interval" must be greater than 0') end
    to[key] = key == "interval" and wanted * 1000 or wanted
  elseif key == "backlog" then
    to.backlog = words.finite(value) or words.refuse('Recur(): Arg "backlog" not a number')
  elseif key == "data" then
    to.data = words.data({ value }, 1, 'Recur(): Arg "data" is not JSON-encoded')
  elseif key == "klass" then
    to.klass = value
  elseif key == "queue" then
    to.queue, to.throttles.bare = value, nil
  elseif key == "throttles" then
    to.throttles = without_own(at, words.names(value, key), to.queue or home)
  else
    words.refuse('Recur(): Unrecognized option "' .. key .. '"')
  end
end

M["recurringJob.update"] = function(at, args)
  local jid = words.text(args, 3, words.NO_JID)
  local t = recurrence.read(at, jid) or words.refuse("Recur(): No recurring job " .. jid)
  local changes = { throttles = t.throttles }
  for i = 4, #args, 2 do
    change(at, changes, args[i], args[i + 1] or words.refuse("No value provided for " .. args[i]), t.queue)
  end
  return recur.update(at, jid, changes)
end

M["recurringJob.addTag"] = function(at, args)
  local jid = template(at, args, "Tag(): Job ")
  return job_text.names(recur.tag(at, jid, true, args, 4, #args), at.accent.empty_list)
end

M["recurringJob.removeTag"] = function(at, args)
  local jid = template(at, args, "Untag(): Job ")
  return job_text.names(recur.tag(at, jid, false, args, 4, #args), "{}")
end

M["recurringJob.cancel"] = function(at, args)
  words.text(args, 3, words.NO_JID)
  recur.cancel(at, args, 3, 3)
  return 1
end

return M
