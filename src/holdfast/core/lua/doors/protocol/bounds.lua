-- bounds: that protocol moves, releases and looks at as much as it is asked to.
local M = {}

M.due, M.lost, M.chores, M.retell = false, false, 1 / 0, true
M.reply, M.message, M.slack, M.ages = 1 / 0, 2147483647, 0, 1
M.odd, M.steps, M.tags, M.history = 1 / 0, 8, 1 / 0, 1 / 0
M.tallies, M.labels, M.parents, M.walk = false, 1 / 0, 1 / 0, 1 / 0
M.hidden = true -- a queue that was forgotten is not made known by its templates
M.unit, M.earliest, M.weight = 1000, -1 / 0, 1 / 0

return M
