-- event_log: the messages of the protocol's section 3, byte for byte and in its order.
local late = require("base.late")
local event = require("nouns.event")
local record = require("base.record")
local root = require("base.root")
local M = {}

local TRACKED = record.FLAG.TRACKED

local call, encode
late.bind(function() call, encode = redis.call, cjson.encode end)

local function log(at, text) call("PUBLISH", at.keys.log, text) end

local function to_worker(at, worker, text)
  call("PUBLISH", at.keys.worker_news .. worker, text)
  log(at, text)
end

function M.put(at, jid, queue)
  log(at, '{"jid":' .. encode(jid) .. ',"event":"put","queue":' .. encode(queue) .. "}")
end

function M.lock_lost(at, jid, worker)
  to_worker(at, worker, '{"jid":' .. encode(jid) .. ',"event":"lock_lost","worker":' .. encode(worker) .. "}")
end

function M.canceled(at, jid, queue, worker)
  local text = '{"jid":' .. encode(jid) .. ',"queue":' .. encode(queue) .. ',"event":"canceled","worker":' ..
    encode(worker) .. "}"
  log(at, text)
  if worker ~= "" then call("PUBLISH", at.keys.worker_news .. worker, text) end
end

function M.completed(at, jid, queue)
  log(at, '{"jid":' .. encode(jid) .. ',"event":"completed","queue":' .. encode(queue) .. "}")
end

function M.advanced(at, jid, to, queue)
  log(at, '{"jid":' .. encode(jid) .. ',"to":' .. encode(to) .. ',"event":"advanced","queue":' .. encode(queue) .. "}")
end

function M.failed(at, jid, group, message, worker)
  log(at, '{"message":' .. encode(message) .. ',"jid":' .. encode(jid) .. ',"group":' .. encode(group) ..
    ',"event":"failed","worker":' .. encode(worker) .. "}")
end

-- The flags of a fresh job: somebody may have tracked an earlier one of that name.
function M.flags(at, jid)
  return root.is_marked(at) and call("ZSCORE", at.keys.marks, jid) and TRACKED or 0
end

-- The jid itself, on a channel of its own, if somebody tracks the job.
function M.tracked(at, what, jid, r)
  if record.has(r.flags, TRACKED) then call("PUBLISH", at.keys.news .. what, jid) end
end

function M.marked(at, what, jid) call("PUBLISH", at.keys.news .. what, jid) end

function M.config_set(at, key, value)
  log(at, '{"option":' .. encode(key) .. ',"event":"config_set","value":' .. encode(value) .. "}")
end

function M.config_unset(at, key)
  log(at, '{"event":"config_unset","option":' .. encode(key) .. "}")
end

M.ended = event.ended

return M
