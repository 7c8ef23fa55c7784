-- prelude: names of the store and of Lua that all modules use. The builder puts this file in
-- front of them, so no file requires it.
--
-- While a library loads, the store offers next to nothing (`redis.call`, `struct` and the like
-- appear with the first call): a door has the names bound before its first verb.
-- luacheck: ignore 211 231
local call, try, digest
local byte, char, find, format, gmatch, gsub, match, rep, sub
local ceil, floor, frexp, max, min
local concat, insert, remove, unpack_
local pack, unpack_bytes, mp_pack, mp_unpack, mp_some, encode, decode

local function bind()
  call, try, digest = redis.call, redis.pcall, redis.sha1hex
  byte, char, find, format, gmatch = string.byte, string.char, string.find, string.format, string.gmatch
  gsub, match, rep, sub = string.gsub, string.match, string.rep, string.sub
  ceil, floor, frexp, max, min = math.ceil, math.floor, math.frexp, math.max, math.min
  concat, insert, remove, unpack_ = table.concat, table.insert, table.remove, unpack
  pack, unpack_bytes = struct.pack, struct.unpack
  mp_pack, mp_unpack, mp_some = cmsgpack.pack, cmsgpack.unpack, cmsgpack.unpack_limit
  encode, decode = cjson.encode, cjson.decode
end
