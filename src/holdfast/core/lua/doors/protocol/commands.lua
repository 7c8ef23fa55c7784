-- commands: all of that protocol's, wherever they are: (at, args) by name.
local advancing = require("doors.protocol.advancing")
local depending = require("doors.protocol.depending")
local looking = require("doors.protocol.looking")
local noting = require("doors.protocol.noting")
local patterns = require("doors.protocol.patterns")
local people = require("doors.protocol.people")
local popping = require("doors.protocol.popping")
local putting = require("doors.protocol.putting")
local recurring = require("doors.protocol.recurring")
local setting = require("doors.protocol.setting")
local settling = require("doors.protocol.settling")
local tagging = require("doors.protocol.tagging")
local M = {}

function M.find(name)
  return settling[name] or looking[name] or setting[name] or putting[name] or popping[name] or recurring[name]
    or people[name] or patterns[name] or tagging[name] or noting[name] or depending[name] or advancing[name]
end

return M
