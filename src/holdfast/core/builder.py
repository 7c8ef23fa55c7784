"""Assemble the Lua core: modules that require each other become one text.

A file is a plain Lua module (`local job = require("nouns.job")` … `return M`), but for the names of the store and of Lua
that it takes from `base/prelude.lua`, which stands before all modules. Beginning with a door, the requires are followed
and sorted so that each module comes after those it needs. The result is not stored in a file: assembling takes well
under a millisecond after the files were read.

`assemble` is for libraries, which are run once. The store keeps the objects that a library made, and its garbage
collector visits all of them again and again, so the cost of a call grows with their number. Therefore only the modules
of the most frequent calls are made at the start; any other is kept as text until one of its members is first used.
`core.bundle` is for texts that the store runs again for each call; no client of ours needs it.
"""

import re
from collections.abc import Collection

from holdfast.core.rows import Row, rows
from holdfast.core.sources import CoreBroken, in_order, requires, source

__all__ = ["CoreBroken", "assemble", "head", "in_order", "requires", "source"]

_TAKEN = re.compile(r"^(?:local |M\.)[\w, .]+ = (.*)$", re.MULTILINE)
_SPARE = re.compile(r"^ *--.*$|^ +| +-- .*$", re.MULTILINE)

_NAMES = re.compile(r"^local (\w[\w, ]*)$", re.MULTILINE)
_HEAD = """\
local loaded, texts, rows = {}, {}, {}
local function require(name) return loaded[name] end
local function make(name)
  local text = texts[name]
  texts[name] = nil
  setmetatable(loaded[name], nil)
  return loadstring("local require, M, NAMES = ...\\n" .. text, "=" .. name)(require, loaded[name], NAMES)
end
local function run(name, place)
  rows[name] = rows[name] or make(name)
  return rows[name][place][4]
end
local function ready()
  if call then return end
  bind()
  for name in pairs(texts) do
    setmetatable(loaded[name], { __index = function(M, key) make(name) return rawget(M, key) end })
  end
end
"""


def assemble(door: str, at_once: Collection[str] | None = None) -> str:
    """One Lua chunk: the modules that `door` needs, then the door.

    `at_once` are the modules that are made when the library is loaded, None for all of them.
    Raises CoreBroken if one of these takes something out of a module that is made later.
    """
    modules = in_order(door)
    first = modules if at_once is None else [name for name in modules if name in at_once or name == door]
    later = [name for name in modules if name not in first]
    parts = [head(), *(_kept(name) for name in later)]
    for name in first:
        _check(name, later)
        parts.append(f'loaded["{name}"] = (function()\n{source(name)}end)()')
    return "\n".join(parts) + "\n"


def head() -> str:
    """Return the text before the modules: the names of the prelude, and the functions that find and make modules."""
    prelude = source("base.prelude")
    return prelude + _HEAD.replace("NAMES", ", ".join(_NAMES.findall(prelude)))


def _kept(module: str) -> str:
    """Return a module as text, to be made later. The verbs of a file of rows are known at once, their functions later."""
    text = source(module)
    known = "".join(_row(module, place, row) for place, row in enumerate(rows(module), 1))
    body = _SPARE.sub("", text.replace("local M = {}\n", "\n", 1))  # a line stays a line
    return f'loaded["{module}"] = {{\n{known}}}\ntexts["{module}"] = [==[\n{body}]==]'


def _row(module: str, place: int, row: Row) -> str:
    flags = "".join(f'"{flag}", ' for flag in row.flags)
    run = f'function(ctx, args) return run("{module}", {place})(ctx, args) end'
    return f'  {{ "{row.verb}", {{ {flags}}}, "{row.words}", {run} }},\n'


def _check(module: str, later: Collection[str]) -> None:
    aliases = {
        alias: name
        for alias, name in re.findall(r'^local (\w+) = require\("([\w.]+)"\)', source(module), re.MULTILINE)
        if name in later and not name.startswith("doors.")
    }
    for taken in _TAKEN.findall(source(module)):
        for alias in re.findall(r"\b(\w+)\.\w+", taken):
            if alias in aliases:
                raise CoreBroken(f"{module} takes something of {aliases[alias]} before that is made")
