-- batch: what holds for the many jobs of one call.
local M = {}

M.LIMIT = 512 -- jobs of one native call

-- Runs `one(jid, token, data)` for each such triple of args[first … last]. Returns
-- how many it answered nothing for, then (jid, code) of the others.
function M.settle(args, first, last, one)
  local reply, count = { 0 }, 0
  for i = first, last, 3 do
    local code = one(args[i], tonumber(args[i + 1]), args[i + 2])
    if code then
      reply[#reply + 1], reply[#reply + 2] = args[i], code
    else
      count = count + 1
    end
  end
  reply[1] = count
  return reply
end

return M
