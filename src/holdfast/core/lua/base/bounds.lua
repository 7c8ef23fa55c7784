-- bounds: the largest values that the core takes; times are in ms. Written by `make docs` from bounds.py.
local M = {}

M.NAME = 200
M.TAGS = 64
M.THROTTLES = 16
M.BATCH = 512
M.PRIORITY = 4095
M.RETRIES = 1000
M.LOSSES = 254
M.BACKLOG = 1000000
M.MAXIMUM = 4294967295
M.WHOLE = 9007199254740991
M.LIMIT = 1000
M.COUNT = 10000
M.LEVELS = 15
M.CENTURY = 3162240000000
M.MONTH = 2678400000
M.LEASE = 86400000
M.BACKOFF = { "exponential", 1000, 600000, 25 }

return M
