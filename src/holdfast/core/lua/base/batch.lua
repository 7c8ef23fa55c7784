-- batch: long lists, in pieces the store's `unpack` can carry.
local late = require("base.late")
local M = {}

M.LIMIT = 512 -- jobs of one native call
local PIECE = 4000 -- arguments of one inner command

local call, unpack_
late.bind(function() call, unpack_ = redis.call, unpack end)

-- Runs `command key a b c…` for all `values`, `stride` of which belong together.
function M.each(command, key, values, stride)
  local count = #values
  local piece = PIECE - PIECE % (stride or 1)
  for first = 1, count, piece do
    local last = first + piece - 1
    if last > count then last = count end
    call(command, key, unpack_(values, first, last))
  end
end

return M
