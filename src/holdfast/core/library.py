"""The native library as the store gets it: name, version, digest, text."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from holdfast.core.sources import CoreBroken, VerbRow, in_order, requires, rows, rows_of, source
from holdfast.release import CORE_VERSION

# Assemble the Lua core: modules that require each other become one text.
# A file is a plain Lua module (`local job = require("nouns.job.job")` … `return M`), but for the names of the
# store and of Lua that it takes from `base/prelude.lua`, which stands before all modules. Beginning with a
# door, the requires are followed and sorted so that each module comes after those it needs. The result is not
# stored in a file: assembling takes well under a millisecond after the files were read.
# `assemble` is for libraries, which are run once. The store keeps the objects that a library made, and its
# garbage collector visits all of them again and again, so each call costs more, the more objects there are.
# Therefore only the modules of the most frequent calls are made at the start; any other is kept as text until
# one of its members is first used. `core.bundle` is for texts that the store runs again for each call; no
# client of ours needs it.

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


def _row(module: str, place: int, row: VerbRow) -> str:
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


NAME = "holdfast1"
"""The library's name; the number is the protocol between client and core."""
PREFIX = "hf1_"


AT_ONCE = frozenset(
    f"{folder}.{name}"
    for folder, names in {
        "base": "bounds layout refuse bits keys order record root text batch",
        "nouns.job": "job state touched_jobs admission ending retention completed index",
        "nouns.queue": "queue stats days minutes tally due",
        "nouns.lease": "lease grant loss replay timer worker",
        "nouns.throttle": "throttle",
        "nouns.event": "event",
        "nouns.recurrence": "series",
        "nouns.setting": "settings",
        "verbs": "put pop complete heartbeat",
        "doors": "checks requests native_work native",
        "doors.dialects": "native",
    }.items()
    for name in names.split()
)
"""The modules that a put, a pop and a completion need. Any other is made at the first use of one of its members."""


def shown_core(version: str, digest: str) -> str:
    """Return version and digest of a core for display: `0.3.0 (development build, digest 1a2b3c4d5e6f)`."""
    release_, dot, _ = version.partition(".dev")
    return f"{release_} ({'development build, ' if dot else ''}digest {digest[:12]})"


@dataclass(frozen=True, slots=True)
class Library:
    """The argument of `FUNCTION LOAD`, and what `hf1_info` returns after it was loaded."""

    name: str
    version: str
    digest: str
    text: str
    functions: tuple[str, ...]


@cache
def library() -> Library:
    """Assemble the native library. The digest covers the Lua text, not the version."""
    body = assemble("doors.native", AT_ONCE)
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    head = f'#!lua name={NAME}\nlocal HOLDFAST_CORE = {{ version = "{CORE_VERSION}", digest = "{digest}" }}\n'
    functions = tuple(PREFIX + row.verb for row in rows_of("doors.native"))
    return Library(NAME, CORE_VERSION, digest, head + body, functions)
