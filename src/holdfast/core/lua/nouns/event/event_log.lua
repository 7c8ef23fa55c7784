-- event_log: the messages of the protocol's section 3, byte for byte and in its order.
local event = require("nouns.event.event")
local record = require("base.record")
local root = require("base.root")
local M = {}

local TRACKED = record.FLAG.TRACKED

local function log(ctx, text) call("PUBLISH", ctx.keys.log, text) end

local function to_worker(ctx, worker, text)
  call("PUBLISH", ctx.keys.worker_channel .. worker, text)
  log(ctx, text)
end

function M.put(ctx, jid, queue)
  log(ctx, '{"jid":' .. encode(jid) .. ',"event":"put","queue":' .. encode(queue) .. "}")
end

function M.lock_lost(ctx, jid, worker)
  to_worker(ctx, worker, '{"jid":' .. encode(jid) .. ',"event":"lock_lost","worker":' .. encode(worker) .. "}")
end

function M.canceled(ctx, jid, queue, worker)
  local text = '{"jid":' .. encode(jid) .. ',"queue":' .. encode(queue) .. ',"event":"canceled","worker":' ..
    encode(worker) .. "}"
  log(ctx, text)
  if worker ~= "" then call("PUBLISH", ctx.keys.worker_channel .. worker, text) end
end

function M.completed(ctx, jid, queue)
  log(ctx, '{"jid":' .. encode(jid) .. ',"event":"completed","queue":' .. encode(queue) .. "}")
end

function M.advanced(ctx, jid, to, queue)
  log(ctx, '{"jid":' .. encode(jid) .. ',"to":' .. encode(to) .. ',"event":"advanced","queue":' .. encode(queue) .. "}")
end

function M.failed(ctx, jid, group, message, worker)
  log(ctx, '{"message":' .. encode(message) .. ',"jid":' .. encode(jid) .. ',"group":' .. encode(group) ..
    ',"event":"failed","worker":' .. encode(worker) .. "}")
end

-- The flags of a fresh job: an earlier one of that name may have been tracked.
function M.flags(ctx, jid)
  return root.is_marked(ctx) and call("ZSCORE", ctx.keys.marks, jid) and TRACKED or 0
end

function M.config_set(ctx, key, value)
  log(ctx, '{"option":' .. encode(key) .. ',"event":"config_set","value":' .. encode(value) .. "}")
end

function M.config_unset(ctx, key)
  log(ctx, '{"event":"config_unset","option":' .. encode(key) .. "}")
end

M.tracked, M.marked, M.ended = event.tracked, event.marked, event.ended

return M
