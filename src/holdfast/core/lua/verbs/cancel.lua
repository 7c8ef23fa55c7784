-- cancel: jobs are deleted, wherever they are. A completed one is left alone.
local keys = require("base.keys")
local dependency = require("nouns.dependency")
local job = require("nouns.job")
local lease = require("nouns.lease")
local state = require("nouns.state")
local tag = require("nouns.tag")
local M = {}

-- Returns per jid 1 (cancelled) or 0 (unknown, or complete).
function M.run(at, args, first, last)
  local reply = {}
  for i = first, last do
    local jid = args[i]
    local r = job.read(at, jid)
    if r and r.state ~= state.COMPLETE then
      local running = r.state == state.RUNNING
      at.events.canceled(at, jid, r.queue, running and r.worker or "")
      lease.evict(at, jid, r)
      if not running then at.throttles.release(at, keys.of_queue(at, r.queue), jid, r) end
      if at.events.tracked then at.events.tracked(at, "canceled", jid, r) end
      job.announce_end(at, jid, r)
      tag.forget(at, jid, r)
      dependency.leave(at, jid, r)
      job.delete(at, jid, r)
      reply[#reply + 1] = 1
    else
      reply[#reply + 1] = 0
    end
  end
  return reply
end

return M
