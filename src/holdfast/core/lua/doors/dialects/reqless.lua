-- reqless: the words of this protocol where a related one has others.
--
-- Constants only, read as `ctx.dialect`; `qless` has the same names. What is not here does not hold.
local M = {}

M.put_queue = "queue" -- the key under which a line of history names the queue of a put
M.limit = "limit" -- the name of the argument with the number of jobs
M.empty_list = "[]" -- a reply that is an empty list

return M
