-- events: the messages of qless: those of the protocol that came of it, and one more.
local event_log = require("nouns.event.event_log")
local M = {}

M.put, M.lock_lost, M.canceled = event_log.put, event_log.lock_lost, event_log.canceled
M.advanced, M.completed, M.failed, M.flags = event_log.advanced, event_log.completed, event_log.failed, event_log.flags
M.tracked, M.marked = event_log.tracked, event_log.marked
M.config_set, M.config_unset, M.ended = event_log.config_set, event_log.config_unset, event_log.ended

-- A retry used up the last try.
function M.exhausted(ctx, jid, r) event_log.tracked(ctx, "failed", jid, r) end

return M
