-- luacheck: ignore 631
-- layout: how a job is packed. Written by `make docs` from models/layout.py, which has the meaning of each.
local M = {}

M.HEAD = "<BHhHhhBI6Bc0Bc0I6"
M.TAIL = "<I6I6Bc0I6"
M.SHORT_HEAD = "<BHhHhhBI6Bc0Bc0"
M.SHORT_TAIL = "<I6I6Bc0"
M.SHORT_WHOLE = "<BHhHhhBI6Bc0Bc0I6I6Bc0c0"
M.FACTS = "<dddhHhhBddHBc0Bc0"
M.SHORT = 64
M.LEVEL = 1
M.STATES = { "waiting", "running", "complete", "failed", "scheduled", "depends", "throttled", "stalled" }
M.FLAG = { TRACKED = 1, EXTRA = 2, DEPENDENTS = 4, THROTTLED = 8, TAGGED = 16, SPILLED = 32, NOTICED = 64, HISTORY = 128, AWAITED = 256, NAMED = 512, OPTIONS = 1024, DEPENDING = 2048, EXPIRING = 4096, BUDGETED = 8192, FLOW = 16384, GROUPED = 32768 }

return M
