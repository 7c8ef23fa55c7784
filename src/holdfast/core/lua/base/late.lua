-- late: names that exist only once a call runs.
--
-- While a library loads, the store offers next to nothing (`redis.call`, `struct`
-- and the like appear with the first call). A module hands in a function that
-- fills its locals; the door runs all of them once, before its first verb.
local M = {}

local waiting, count, done = {}, 0, false

function M.bind(fill)
  if done then return fill() end
  count = count + 1
  waiting[count] = fill
end

function M.ready()
  if done then return end
  done = true
  for i = 1, count do waiting[i]() end
end

return M
