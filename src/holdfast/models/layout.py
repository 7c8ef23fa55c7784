"""How the core packs a job into one string, and what it sends of it to workers: one home for the core and for Python.

`core/lua/base/layout.lua` is made of this by `make docs`. Formats are those of the core's `pack`: `I6` is a time in ms, and
`Bc0` a name behind its length.
"""

import struct
from typing import Final

HEAD: Final = "<BHhHhhBI6Bc0Bc0"
"""State, flags, priority, attempts, retries, remaining, losses, when created; queue and klass."""
QUEUED: Final = "I6"
"""When it was queued: behind the head, unless it is short."""
RUN: Final = "<I6I6Bc0"
"""Of a job that was popped: when, when it ended, the worker."""
TOKEN: Final = "I6"
"""Behind the run, unless it is short. The body of the job is the rest."""
SHORT: Final = 64
"""Added to the state of a record in the short form: `queued` is `created`, and the token is the time of the pop."""
GRANTED: Final = "<dddhHhhBddHBc0Bc0"
"""What a worker gets: lease end, lease length, token, priority, attempts, retries, remaining, losses, created, queued, flags; queue and klass."""

STATES: Final = ("waiting", "running", "complete", "failed", "scheduled", "depends", "throttled", "stalled")
"""The states of records, numbered from 1."""
FLAGS: Final = {
    "TRACKED": 1, "EXTRA": 2, "DEPENDENTS": 4, "THROTTLED": 8, "TAGGED": 16, "SPILLED": 32, "NOTICED": 64, "HISTORY": 128,
    "AWAITED": 256, "NAMED": 512, "OPTIONS": 1024, "DEPENDING": 2048, "EXPIRING": 4096, "BUDGETED": 8192,
    "FLOW": 16384, "GROUPED": 32768,
}  # fmt: skip
"""FLOW and GROUPED are allotted and not used yet: the end of such a job is counted in its flow; a group stands in front of its body."""
LEVEL: Final = 1
"""What this release understands: of a root, beyond its schema, and of jobs, which may need a worker of a level (option `needs`)."""


def fixed_part(layout: str) -> struct.Struct:
    """Return what reads a layout up to the length of its first name; a time is two numbers, the low four bytes and the high two."""
    return struct.Struct(layout.partition("c0")[0].replace("I6", "IH"))


def in_lua() -> str:
    """Return the text of `core/lua/base/layout.lua`."""
    texts = {
        "HEAD": HEAD + QUEUED,
        "TAIL": RUN + TOKEN,
        "SHORT_HEAD": HEAD,
        "SHORT_TAIL": RUN,
        "SHORT_WHOLE": f"{HEAD}{RUN[1:]}c0",
        "FACTS": GRANTED,
    }
    lines = [f'M.{name} = "{text}"' for name, text in texts.items()]
    flags = ", ".join(f"{name} = {value}" for name, value in FLAGS.items())
    names = ", ".join(f'"{name}"' for name in STATES)
    return "\n".join(
        (
            _HEAD,
            *lines,
            f"M.SHORT = {SHORT}",
            f"M.LEVEL = {LEVEL}",
            f"M.STATES = {{ {names} }}",
            f"M.FLAG = {{ {flags} }}",
            "",
            "return M",
            "",
        )
    )


_HEAD: Final = """\
-- luacheck: ignore 631
-- layout: how a job is packed. Written by `make docs` from models/layout.py, which has the meaning of each.
local M = {}
"""
