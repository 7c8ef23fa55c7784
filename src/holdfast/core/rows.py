"""The verbs that the files of a door register: rows of verb, flags and arguments, read from their text."""

import re
from typing import NamedTuple

from holdfast.core.sources import CoreBroken, in_order, source

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
