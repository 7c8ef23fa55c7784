-- dialect: what this protocol says in its own way, and its kin in another.
--
-- Constants only, read as `ctx.dialect`; a door that speaks otherwise brings a file of
-- the same names. What is not here is not said.
local M = {}

M.put_queue = "queue" -- the key under which a line of history names the queue of a put
M.limit = "limit" -- the name of the argument that says how many
M.empty_list = "[]" -- a reply that is an empty list

return M
