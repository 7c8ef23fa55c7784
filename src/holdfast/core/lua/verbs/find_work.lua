-- find_work: a worker of many queues asks which of them may have something to hand out.
local index = require("nouns.index")
local round = require("nouns.round")
local M = {}

M.WILL_NOT_WAIT, M.WILL_WAIT, M.WOKEN = 0, 1, 2

-- The names of up to `most` queues from place `first` on that have ready jobs, and of as many that have something due;
-- a worker that is going to wait if none is its own says so (`mode`), and so does one that was woken and can take no
-- more: it gets no names. Returns the ms until something else is due (-1: never), whether there may be more names (1 or
-- 0), how many are of the first kind, and the names.
function M.run(at, fleet, mode, first, most)
  if mode == M.WOKEN then
    index.hand_on(at, fleet)
    return { -1, 0, 0 }
  end
  if mode == M.WILL_WAIT then index.wait(at, fleet) end
  local is_done, again = round.go_on(at)
  local away = index.away(at)
  if not is_done then away = 0 elseif again and (away < 0 or again < away) then away = again end
  local ready, due = index.names(at, first, most)
  local reply = { away, math.max(#ready, #due) == most and 1 or 0, #ready }
  for i = 1, #ready do reply[#reply + 1] = ready[i] end
  for i = 1, #due do reply[#reply + 1] = due[i] end
  return reply
end

return M
