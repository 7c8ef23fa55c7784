-- dialect: what qless says otherwise than the protocol that came of it.
local M = {}

M.put_queue = "q"
M.limit = "count"
M.empty_list = "{}"
M.lists_singly = true -- jids come one by one, not as one text
M.exhausted = "failed" -- the line of a job whose last retry was used up
M.names_last_holder = true -- a job that was timed out shows who had it
M.names_jid = true -- a refusal says which job it speaks of
M.asks_ttl_apart = true -- a throttle does not tell what is left of its time
M.unfails_any = true -- a count of 0 or less leaves so many of the newest in their group

-- The settings that are shown unless somebody set them. Two of them mean nothing.
M.defaults = {
  ["grace-period"] = 10, ["heartbeat"] = 60, ["histogram-history"] = 7, ["jobs-history"] = 604800,
  ["jobs-history-count"] = 50000, ["stats-history"] = 30,
}

return M
