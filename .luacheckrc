-- The store runs Lua 5.1 with these names added; those of the last three lines come from base/prelude.lua.
std = "lua51"
read_globals = {
  "redis", "server", "struct", "cmsgpack", "cjson", "bit", "KEYS", "ARGV", "ready",
  "call", "try", "digest", "byte", "char", "find", "format", "gmatch", "gsub", "match", "rep", "sub", "ceil", "floor",
  "frexp", "max", "min", "concat", "insert", "remove", "unpack_", "pack", "unpack_bytes", "mp_pack", "mp_unpack",
  "mp_some", "encode", "decode",
}
-- Put before the modules when the library is assembled (core/library.py).
globals = { "HOLDFAST_CORE" }
max_line_length = 120
