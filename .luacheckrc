-- The store runs Lua 5.1 with these names added.
std = "lua51"
read_globals = { "redis", "server", "struct", "cmsgpack", "cjson", "bit", "KEYS", "ARGV" }
-- Put before the modules when the library is assembled (core/library.py).
globals = { "HOLDFAST_CORE" }
max_line_length = 120
