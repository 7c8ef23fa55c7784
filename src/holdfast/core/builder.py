"""Assembling the Lua core: modules that require each other become one text.

A file is a plain Lua module (`local job = require("nouns.job")` … `return M`). From a door, the requires are followed
and sorted so that each module comes after what it needs. Nothing generated is stored: assembling takes well under a
millisecond once the files are read.

`assemble` is for libraries, which are run once: every module is made at the start. `script` is for texts that the
store runs anew for every call: there a name is bound when it is first used.
"""

from holdfast.core.script import script
from holdfast.core.sources import CoreBroken, in_order, requires, source

__all__ = ["CoreBroken", "assemble", "in_order", "requires", "script", "source"]


def assemble(door: str) -> str:
    """One Lua chunk: the modules that `door` needs, each in a closure of its own, then the door."""
    parts = ["local loaded = {}", "local function require(name) return loaded[name] end"]
    parts += [f'loaded["{module}"] = (function()\n{source(module)}end)()' for module in in_order(door)]
    return "\n".join(parts) + "\n"
