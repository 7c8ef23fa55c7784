-- commands: all of that protocol's, wherever they are: (at, args) by name.
local dependencies = require("doors.protocol.dependencies")
local views = require("doors.protocol.views")
local notes = require("doors.protocol.notes")
local patterns = require("doors.protocol.patterns")
local workers = require("doors.protocol.workers")
local pop = require("doors.protocol.pop")
local put = require("doors.protocol.put")
local recurrences = require("doors.protocol.recurrences")
local configuration = require("doors.protocol.configuration")
local lifecycle = require("doors.protocol.lifecycle")
local M = {}

function M.find(name)
  return lifecycle[name] or views[name] or configuration[name] or put[name] or pop[name] or recurrences[name]
    or workers[name] or patterns[name] or notes[name] or dependencies[name]
end

return M
