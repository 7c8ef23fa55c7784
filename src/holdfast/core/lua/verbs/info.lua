-- info: the version of the core, the facts of the root, and the commands that the caller may not run.
local keys = require("base.keys")
local refuse = require("base.refuse")
local root = require("base.root")
local M = {}

-- Every command the core uses inside: asked about at connect, because a missing
-- right would show only when the command is reached, after earlier writes.
local INNER = {
  "APPEND", "DECRBY", "EXISTS", "EXPIRE", "GET",
  "HDEL", "HGET", "HGETALL", "HINCRBY", "HKEYS", "HMGET", "HSCAN", "HSET", "HSETNX",
  "INCRBY",
  "LINDEX", "LLEN", "LPOP", "LPOS", "LRANGE", "LREM", "LSET",
  "MGET", "MSET", "MSETNX", "PERSIST", "PUBLISH", "RENAME", "RPUSH",
  "SET", "SETNX", "STRLEN", "TIME", "UNLINK", "XADD", "XREVRANGE",
  "ZADD", "ZCARD", "ZCOUNT", "ZINCRBY", "ZPOPMIN", "ZRANGE", "ZRANK", "ZREM", "ZSCAN", "ZSCORE",
}
-- Arguments that make each of them a well-formed call on the root.
local SHAPE = {
  TIME = {}, PUBLISH = { "e:c", "" }, MSET = { "r", "1" }, MSETNX = { "r", "1" }, SET = { "r", "1" },
  HSET = { "r", "1", "1" }, HGET = { "r", "1" }, HDEL = { "r", "1" }, HMGET = { "r", "1" }, HSCAN = { "r", "0" },
  HINCRBY = { "r", "1", "1" }, LINDEX = { "r", "0" }, LRANGE = { "r", "0", "1" },
  EXPIRE = { "r", "1" }, LREM = { "r", "0", "1" }, LPOS = { "r", "1" }, ZRANK = { "r", "1" }, ZADD = { "r", "1", "1" },
  ZCOUNT = { "r", "0", "1" }, ZRANGE = { "r", "0", "1" }, APPEND = { "r", "1" }, INCRBY = { "r", "1" },
  DECRBY = { "r", "1" }, RPUSH = { "r", "1" }, SETNX = { "r", "1" }, RENAME = { "r", "r" },
  ZSCAN = { "r", "0" }, HSETNX = { "r", "1", "1" },
  ZINCRBY = { "r", "1", "1" }, ZREM = { "r", "1" }, ZSCORE = { "r", "1" }, LSET = { "r", "0", "1" },
  XADD = { "r", "*", "1", "1" }, XREVRANGE = { "r", "+", "-" },
}

local function denied(key)
  local names = {}
  for _, name in ipairs(INNER) do
    local shape = {}
    for i, word in ipairs(SHAPE[name] or { "r" }) do
      shape[i] = word == "r" and key or (word == "e:c" and key .. word) or word
    end
    if not redis.acl_check_cmd(name, unpack_(shape)) then names[#names + 1] = name:lower() end
  end
  return table.concat(names, ",")
end

-- `mode`: "" looks, "make" makes a missing root, "test" makes a test root whose
-- clock stands at `clock` ms. Only the call that creates a root can make it a test
-- root, only in a namespace that begins with "test".
function M.run(key, mode, clock, core)
  if mode ~= "" and mode ~= "make" and mode ~= "test" then refuse.call("BAD_ARGUMENT", "mode is '', make or test") end
  local found = root.current(key)
  if not found then
    if mode == "" then refuse.call("NO_ROOT", key) end
    local test = mode == "test"
    if test and not keys.may_be_test(key) then refuse.call("NOT_A_TEST_ROOT", key .. " does not begin with test") end
    found = root.unpacked(root.make(key, test and clock or nil))
  end
  local now = root.is_test(found) and tonumber(redis.call("HGET", key, "clock")) or root.store_time()
  return {
    core.version, core.digest, found.schema, found.epoch, now, root.is_test(found) and 1 or 0, denied(key),
    found.heartbeat, found.grace,
  }
end

return M
