-- put_x: jobs come into a queue that use what `put` does not know: tags, throttles,
-- dependencies and options. Each is looked at by itself.
local keys = require("base.keys")
local put_one = require("verbs.put_one")
local M = {}

-- `jobs` are tables of jid, klass, data, wish. Returns as `put` does.
function M.run(at, mode, name, priority, retries, delay, jobs)
  local to = { queue = keys.of_queue(at, name), priority = priority, retries = retries, delay = delay, limited = nil }
  local reply = { 0 }
  for i = 1, #jobs do
    local one = jobs[i]
    local code = put_one.run(at, to, mode, one.jid, one.klass, one.data, one.wish)
    if code then
      reply[#reply + 1], reply[#reply + 2] = i - 1, code
    else
      reply[1] = reply[1] + 1
    end
  end
  return reply
end

return M
