-- result: what a function job returned, in a key of its own that outlives the job.
local M = {}

function M.keep(ctx, jid, result, keep)
  if byte(result) == 0 then result = "null" end -- of a job that skips what follows: see `handover.skips`
  call("SET", ctx.keys.result .. jid, result, "PX", keep)
end

-- The stored bytes, or false.
function M.read(ctx, jid) return call("GET", ctx.keys.result .. jid) end

return M
