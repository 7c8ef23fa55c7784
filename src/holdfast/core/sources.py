"""The Lua files of the core, and their dependencies."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

LUA = Path(__file__).parent / "lua"
_REQUIRE = re.compile(r'^local [a-z_]+ = require\("([a-z_.]+)"\)$', re.MULTILINE)


class CoreBroken(RuntimeError):
    """The Lua files do not fit together: a missing module or a cycle. A defect of the core, never of a caller."""


@cache
def source(module: str) -> str:
    """Return the text of a module such as `nouns.job.job`. Raises CoreBroken if there is none."""
    path = LUA / (module.replace(".", "/") + ".lua")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CoreBroken(f"no Lua module {module}") from error


def requires(module: str) -> list[str]:
    """Return the modules that `module` requires, in order."""
    return _REQUIRE.findall(source(module))


def in_order(door: str) -> list[str]:
    """Return all modules that `door` needs, itself last, each after those it requires. Raises CoreBroken for a cycle."""
    done: list[str] = []
    under_way: list[str] = []

    def visit(module: str) -> None:
        if module in done:
            return
        if module in under_way:
            raise CoreBroken("a cycle: " + " → ".join([*under_way[under_way.index(module) :], module]))
        under_way.append(module)
        for needed in requires(module):
            visit(needed)
        under_way.pop()
        done.append(module)

    visit(door)
    return done


# The verbs that the files of a door register: rows of verb, flags and arguments, read from their text.

_ROW = re.compile(
    r'^(?:  \{ |register\()"(\w+)", (ADDS|DRAINS|READS),\s+("[^"]*"(?: \.\.\s+"[^"]*")*),', re.MULTILINE
)
_BEGIN = re.compile(r'^(?:  \{ "|register\(")', re.MULTILINE)
FLAGS = {"ADDS": (), "DRAINS": ("allow-oom",), "READS": ("no-writes",)}
"""The flags of the store for each word in the files."""


class VerbRow(NamedTuple):
    """One verb; `words` names its arguments."""

    verb: str
    flags: tuple[str, ...]
    words: str


def rows(module: str) -> list[VerbRow]:
    """Return the rows of one file, in order. Raises CoreBroken if one cannot be read."""
    text = source(module)
    found = _ROW.findall(text)
    if len(found) != len(_BEGIN.findall(text)):
        raise CoreBroken(f"{module} has a row that cannot be read")
    return [
        VerbRow(verb, FLAGS[flags], "".join(re.findall(r'"([^"]*)"', words))) for verb, flags, words in found
    ]


def rows_of(door: str) -> list[VerbRow]:
    """Return the rows of all files that a door needs."""
    return [row for module in in_order(door) if module.startswith("doors.") for row in rows(module)]
