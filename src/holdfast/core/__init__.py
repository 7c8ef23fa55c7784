"""The Lua core and what assembles it."""
