-- qless: the words of that protocol where reqless has others.
local M = {}

M.put_queue = "q"
M.limit = "count"
M.empty_list = "{}"
M.lists_singly = true -- jids come one by one, not as one text
M.exhausted = "failed" -- the line of a job whose last retry was used up
M.names_last_holder = true -- a job that was timed out shows who had it
M.names_jid = true -- a refusal names its job
M.asks_ttl_apart = true -- a throttle does not show what is left of its time
M.unfails_any = true -- a count of -n leaves the n newest in their group

-- The settings that are shown unless they were set. Two of them mean nothing.
M.defaults = {
  ["grace-period"] = 10, ["heartbeat"] = 60, ["histogram-history"] = 7, ["jobs-history"] = 604800,
  ["jobs-history-count"] = 50000, ["stats-history"] = 30,
}

return M
