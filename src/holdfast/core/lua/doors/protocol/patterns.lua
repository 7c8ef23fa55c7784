-- patterns: rules that clients keep here, about which queues a worker serves and in what
-- order.
local job_text = require("doors.protocol.job_text")
local arguments = require("doors.protocol.arguments")
local patterns = require("nouns.queue.patterns")
local M = {}

local NO_PATTERNS = "^%s*{%s*}%s*$" -- an empty list, as many write it

M["queueIdentifierPatterns.getAll"] = function(ctx)
  return job_text.object(patterns.identifiers(ctx))
end

M["queueIdentifierPatterns.setAll"] = function(ctx, args)
  if #args % 2 == 1 then arguments.refuse("Odd number of identifier patterns") end
  local kept = {}
  for i = 3, #args, 2 do
    local name, text = args[i], args[i + 1]
    if not find(text, NO_PATTERNS) then
      if not patterns.size(text) then arguments.refuse(name .. " has no JSON list of texts") end
      kept[#kept + 1], kept[#kept + 2] = name, text
    end
  end
  patterns.set_identifiers(ctx, kept, 1, #kept)
end

M["queuePriorityPatterns.getAll"] = function(ctx) return job_text.names(patterns.priorities(ctx), "[]") end

M["queuePriorityPatterns.setAll"] = function(ctx, args)
  for i = 3, #args do
    if not patterns.rule(args[i]) then arguments.refuse("a rule is a JSON object whose pattern is a list of texts") end
  end
  patterns.set_priorities(ctx, args, 3, #args)
end

return M
