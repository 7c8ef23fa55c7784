-- lib: the front half of a user's own script. It has two entry points, `Holdfast.config.get`
-- and `Holdfast.job.get`.
--
-- They look at the root that KEYS[1] names, without keys at the one that programs of many
-- languages share. It is opened when something is first asked.
local keys = require("base.keys")
local order = require("base.order")
local order_reqless = require("base.order_reqless")
local record = require("base.record")
local record_reqless = require("base.record_reqless")
local root = require("base.root")
local root_timed = require("base.root_timed")
local dialect = require("doors.dialects.reqless")
local job_text = require("doors.protocol.job_text")
local arguments = require("doors.protocol.arguments")
local config = require("nouns.setting.config")
local throttle_reqless = require("nouns.throttle.throttle_reqless")
local job = require("nouns.job.job")
local throttle = require("nouns.throttle.throttle")

local function native(key)
  return root.open({
    keys = keys.of_root(key), order = order.native, record = record.native, throttles = throttle, dialect = dialect,
    application = "holdfast",
  }, key)
end

local function shared()
  return root_timed.open({
    keys = keys.shared(), order = order_reqless, record = record_reqless, throttles = throttle_reqless,
    dialect = dialect, application = "reqless",
  }, keys.SHARED, root.store_time())
end

local opened = nil

local function opened_root()
  opened = opened or KEYS[1] and native(KEYS[1]) or shared()
  return opened
end

-- A setting as text: what was set, else its default, else false.
local function setting(key)
  return config.get(opened_root(), arguments.text({ key }, 1, "config.get(): Argument 'key' missing"))
end

-- The facts of a job by name, as the reqless protocol names them; nil if there is none.
local function facts(jid)
  local ctx = opened_root()
  local r = job.read(ctx, arguments.text({ jid }, 1, arguments.NO_JID))
  return r and cjson.decode(job_text.of(ctx, jid, r))
end

return { config = { get = setting }, job = { get = facts } }
