"""The Lua core, and the modules that assemble it."""
