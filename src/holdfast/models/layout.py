"""The layout of a job as the core packs it into one string, and of what it sends to workers, for the core and for Python.

`core/lua/base/layout.lua` is made of this by `make docs`. Formats are those of the core's `pack`: `I6` is a time in ms, and
`Bc0` a name behind its length.
"""

import struct
from typing import Final

HEAD: Final = "<BHhHhhBI6Bc0Bc0"
"""The fields at the start of a record: state, flags, priority, attempts, retries, remaining, losses, time of creation, queue, klass."""
QUEUED: Final = "I6"
"""The time when it was queued; follows HEAD, except in the short form."""
RUN: Final = "<I6I6Bc0"
"""The fields of the last run, if the job was popped: time of the pop, time of the end, worker."""
TOKEN: Final = "I6"
"""The token; follows RUN, except in the short form. The rest of the record is the body of the job."""
SHORT: Final = 64
"""Added to the state of a record in the short form: `queued` is `created`, and the token is the time of the pop."""
GRANTED: Final = "<dddhHhhBddHBc0Bc0"
"""The fields that a worker gets with a popped job: lease end, lease length, token, priority, attempts, retries, remaining, losses, created, queued, flags; queue and klass."""

STATES: Final = ("waiting", "running", "complete", "failed", "scheduled", "depends", "throttled", "stalled")
"""The states of records, numbered from 1."""
FLAGS: Final = {
    "TRACKED": 1, "EXTRA": 2, "DEPENDENTS": 4, "THROTTLED": 8, "TAGGED": 16, "SPILLED": 32, "NOTICED": 64, "HISTORY": 128,
    "AWAITED": 256, "NAMED": 512, "OPTIONS": 1024, "DEPENDING": 2048, "EXPIRING": 4096, "BUDGETED": 8192,
    "FLOW": 16384, "GROUPED": 32768,
}  # fmt: skip
"""The flags of a record. GROUPED is reserved and not used yet."""
LEVEL: Final = 1
"""The feature level of this release. A job may need a worker of a level (option `needs`)."""


def fixed_part(layout: str) -> struct.Struct:
    """Return the struct that reads a layout up to the length of its first name. A time is two numbers, the low four bytes and the high two."""
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
