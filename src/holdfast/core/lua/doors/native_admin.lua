-- native_admin: the native door's rows for administrators of an installation.
--
-- A row is verb, flags, arguments in words, and what turns words into a call.
local checks = require("doors.checks")
local ids = require("doors.ids")
local requests = require("doors.requests")
local audit = require("nouns.operation.audit")
local patterns = require("nouns.queue.patterns")
local settings = require("nouns.setting.settings")
local forget = require("verbs.forget")
local watch = require("verbs.watch")

local MOST_QUEUES, MOST_LINES, MOST_PATTERNS = 4, 128, 65536
local DRAINS, READS, ADDS = { "allow-oom" }, { "no-writes" }, {}
local bad, name, number, text = checks.bad, checks.name, checks.number, checks.text

local function few_queues(args, first)
  local last = checks.names(args, first, "queue")
  if last - first >= MOST_QUEUES then bad("at most " .. MOST_QUEUES .. " queues are forgotten in one call") end
  return last
end

-- Patterns are the only texts the core looks into, so they are short.
local function short(args)
  local size = 0
  for i = 1, #args do size = size + #args[i] end
  if size > MOST_PATTERNS then bad("patterns have at most " .. MOST_PATTERNS .. " bytes in all") end
end

local function identifiers(args)
  local last = checks.groups(args, 1, 2)
  short(args)
  for i = 1, last, 2 do
    name(args, i, "identifier")
    if not patterns.size(args[i + 1]) then bad("the patterns of " .. args[i] .. " are not a JSON list of texts") end
  end
  return last
end

local function rules(args)
  local last = checks.groups(args, 1, 1)
  short(args)
  for i = 1, last do
    if not patterns.rule(args[i]) then bad("a rule is a JSON object whose pattern is a list of texts") end
  end
  return last
end

-- The name of a setting and its value, nil for the default.
local function setting(args)
  local known = settings.KNOWN[args[3] or ""]
  if not known then checks.expected("setting", "the name of a setting", args[3]) end
  return args[3], args[4] ~= "" and number(args, 4, args[3], known[2], known[3]) or nil
end

return {
  { "queue_forget", DRAINS, "line number queue...", requests.row(function(ctx, args)
    return forget.run(ctx, true, args, 3, few_queues(args, 3))
  end) },
  { "patterns", READS, "", function(ctx) return { patterns.identifiers(ctx), patterns.priorities(ctx) } end },
  { "identifiers_set", ADDS, "(name patterns)...", function(ctx, args)
    patterns.set_identifiers(ctx, args, 1, identifiers(args))
    return 1
  end },
  { "priorities_set", ADDS, "rule...", function(ctx, args)
    patterns.set_priorities(ctx, args, 1, rules(args))
    return 1
  end },
  { "settings", READS, "", function(ctx) return settings.all(ctx) end },
  { "setting", ADDS, "line number name value [seen]", requests.row(function(ctx, args)
    local which, value = setting(args)
    checks.seen(args, 5, "setting " .. which, ("%.0f"):format(settings.number(ctx, which)))
    settings.set(ctx, which, value)
    return 1
  end) },
  { "audit", DRAINS, "line number who what target detail", requests.row(function(ctx, args)
    return audit.add(ctx, checks.optional(args, 3, "who"), name(args, 4, "what"), checks.optional(args, 5, "target"),
      text(args, 6, "detail", checks.SHORT))
  end) },
  { "audit_list", READS, "before count", function(ctx, args)
    return audit.list(ctx, ids.entry(args, 1, "before"), number(args, 2, "count", 0, MOST_LINES))
  end },
  { "watch", DRAINS, "length", function(ctx, args)
    return watch.run(ctx, number(args, 1, "length", 1, watch.LONGEST))
  end },
}
