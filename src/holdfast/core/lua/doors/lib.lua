-- lib: the front half of a user's own script. It has two entry points, `Holdfast.config.get`
-- and `Holdfast.job.get`.
--
-- They look at the root that KEYS[1] names, without keys at the one that programs of many
-- languages share. It is opened when something is first asked.
local late = require("base.late")
local keys = require("base.keys")
local order = require("base.order")
local order_wide = require("base.order_wide")
local record = require("base.record")
local record_wide = require("base.record_wide")
local root = require("base.root")
local root_timed = require("base.root_timed")
local accent = require("doors.protocol.accent")
local job_text = require("doors.protocol.job_text")
local words = require("doors.protocol.words")
local config = require("nouns.config")
local holders = require("nouns.holders")
local job = require("nouns.job")
local throttle = require("nouns.throttle")
local M = { config = {}, job = {} }

local function native(key)
  return root.open({
    keys = keys.of_root(key), order = order.native, record = record.native, throttles = throttle, accent = accent,
    application = "holdfast",
  }, key)
end

local function shared()
  return root_timed.open({
    keys = keys.shared(), order = order_wide, record = record_wide, throttles = holders, accent = accent,
    application = "reqless",
  }, keys.SHARED, root.store_time())
end

local opened

local function at_root()
  late.ready()
  opened = opened or KEYS[1] and native(KEYS[1]) or shared()
  return opened
end

-- A setting as text: what was set, else its default, else false.
function M.config.get(key)
  return config.get(at_root(), words.text({ key }, 1, "config.get(): Argument 'key' missing"))
end

-- The facts of a job by name, as the reqless protocol names them; nil if there is none.
function M.job.get(jid)
  local at = at_root()
  local r = job.read(at, words.text({ jid }, 1, words.NO_JID))
  return r and cjson.decode(job_text.of(at, jid, r))
end

return M
