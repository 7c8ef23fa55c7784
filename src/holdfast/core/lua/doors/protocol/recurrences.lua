-- recurrences: templates that put jobs again and again.
--
-- A template's list of throttles may be without the own one of its queue; then it is
-- `bare`, and so are those of its jobs.
local keys = require("base.keys")
local job_text = require("doors.protocol.job_text")
local arguments = require("doors.protocol.arguments")
local recurrence = require("nouns.recurrence.recurrence")
local recur = require("verbs.recur")
local M = {}

local function number(found, key, default)
  if not found[key] then return default end
  return arguments.finite(found[key]) or arguments.refuse('Recur(): Arg "' .. key .. '" not a number')
end

-- queue.recurAtInterval queue jid klass data interval offset [key value]...
M["queue.recurAtInterval"] = function(ctx, args)
  local t = { queue = arguments.text(args, 3, arguments.NO_QUEUE), options = {} }
  local jid = arguments.text(args, 4, 'Recur(): Arg "jid" missing')
  t.klass = arguments.text(args, 5, 'Recur(): Arg "klass" missing')
  t.data = arguments.data(args, 6, 'Recur(): Arg "data" missing or not JSON')
  local interval = arguments.number(args, 7, 'Recur(): Arg "interval" not a number')
  local offset = arguments.number(args, 8, 'Recur(): Arg "offset" not a number')
  if interval <= 0 then arguments.refuse('Recur(): Arg "interval" must be greater than 0') end
  local found = arguments.pairs(args, 9, "Recur(): Odd number of additional args")
  t.tags = found.tags and arguments.list(found.tags, "tags") or {}
  t.interval, t.priority = interval * 1000, number(found, "priority", 0)
  t.retries, t.backlog = floor(number(found, "retries", 0)), number(found, "backlog", 0)
  t.throttles = found.throttles and arguments.names(found.throttles, "throttles") or {}
  return recur.run(ctx, jid, t, offset * 1000)
end

-- The template of that name, or a refusal.
local function template(ctx, args, who)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  return jid, recurrence.read(ctx, jid) or arguments.refuse(who .. jid .. " does not exist")
end

local function throttles(ctx, t)
  local ids = t.throttles
  if not ids.bare then ids[#ids + 1] = keys.of_queue(ctx, t.queue).own end
  return ids
end

M["recurringJob.get"] = function(ctx, args)
  local jid, number_text = arguments.text(args, 3, arguments.NO_JID), job_text.number
  local t = recurrence.read(ctx, jid)
  return t and '{"jid":' .. encode(jid) .. ',"klass":' .. encode(t.klass) .. ',"state":"recur","queue":' ..
    encode(t.queue) .. ',"priority":' .. number_text(t.priority) .. ',"interval":' .. job_text.seconds(t.interval) ..
    ',"retries":' .. number_text(t.retries) .. ',"count":' .. number_text(t.count) .. ',"data":' .. encode(t.data) ..
    ',"tags":' .. job_text.names(t.tags, "{}") .. ',"backlog":' .. number_text(t.backlog) ..
    ',"throttles":' .. job_text.names(throttles(ctx, t), "{}") .. "}"
end

local function changed_number(text, key)
  return arguments.finite(text) or arguments.refuse('Recur(): Arg "' .. key .. '" must be a number')
end

-- The list without the queue's own throttle; `bare` if that was not in it.
local function without_own(ctx, ids, queue)
  local others, own = { bare = true }, keys.of_queue(ctx, queue).own
  for i = 1, #ids do
    if ids[i] == own then others.bare = nil else others[#others + 1] = ids[i] end
  end
  return others
end

-- What a pair changes, noted in `changed`; `home` is the queue the template is in.
local function change(ctx, changed, key, value, home)
  if key == "priority" or key == "retries" or key == "interval" then
    local wanted = changed_number(value, key)
    if key == "retries" then wanted = floor(wanted) end
    if key == "interval" and wanted <= 0 then arguments.refuse('Recur(): Arg "interval" must be greater than 0') end
    changed[key] = key == "interval" and wanted * 1000 or wanted
  elseif key == "backlog" then
    changed.backlog = arguments.finite(value) or arguments.refuse('Recur(): Arg "backlog" not a number')
  elseif key == "data" then
    changed.data = arguments.data({ value }, 1, 'Recur(): Arg "data" is not JSON-encoded')
  elseif key == "klass" then
    changed.klass = value
  elseif key == "queue" then
    changed.queue, changed.throttles.bare = value, nil
  elseif key == "throttles" then
    changed.throttles = without_own(ctx, arguments.names(value, key), changed.queue or home)
  else
    arguments.refuse('Recur(): Unrecognized option "' .. key .. '"')
  end
end

M["recurringJob.update"] = function(ctx, args)
  local jid = arguments.text(args, 3, arguments.NO_JID)
  local t = recurrence.read(ctx, jid) or arguments.refuse("Recur(): No recurring job " .. jid)
  local changes = { throttles = t.throttles }
  for i = 4, #args, 2 do
    change(ctx, changes, args[i], args[i + 1] or arguments.refuse("No value provided for " .. args[i]), t.queue)
  end
  return recur.update(ctx, jid, changes)
end

M["recurringJob.addTag"] = function(ctx, args)
  local jid = template(ctx, args, "Tag(): Job ")
  return job_text.names(recur.tag(ctx, jid, true, args, 4, #args), ctx.dialect.empty_list)
end

M["recurringJob.removeTag"] = function(ctx, args)
  local jid = template(ctx, args, "Untag(): Job ")
  return job_text.names(recur.tag(ctx, jid, false, args, 4, #args), "{}")
end

M["recurringJob.cancel"] = function(ctx, args)
  arguments.text(args, 3, arguments.NO_JID)
  recur.cancel(ctx, args, 3, 3)
  return 1
end

return M
