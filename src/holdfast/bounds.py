"""The bounds of what the core takes, as types. Schemas, checks (`limits`) and `core/lua/base/bounds.lua` are made of them."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final, get_args

from msgspec import Meta

MAX_WHOLE: Final = 2**53 - 1
"""The largest whole number that a double holds exactly."""
MAX_DELAY: Final = 100 * 366 * 86_400.0
"""Seconds: a hundred years. Later moments do not fit into a record."""
MAX_BATCH: Final = 512
"""The most jobs or names in one call."""
DEFAULT_BACKOFF: Final = ("exponential", 1000, 600_000, 25)
"""The pause between two attempts of a function job without one: kind, first and longest pause in ms, jitter in percent."""
MAX_PAUSE_MS: Final = 31 * 86_400_000
"""The longest pause between two attempts."""
_CENTURY_MS: Final = round(MAX_DELAY * 1000)
NAME_PATTERN: Final = r"^[^\x00-\x1f\x7f-\x9f]+$"

# Names.

Name = Annotated[str, Meta(min_length=1, max_length=200, extra_json_schema={"pattern": NAME_PATTERN})]
OptionalName = Annotated[str, Meta(max_length=200)]
"""A name, or "" for none."""
Names = Annotated[Sequence[Name], Meta(max_length=MAX_BATCH)]
TagNames = Annotated[Sequence[Name], Meta(max_length=64)]
ThrottleNames = Annotated[Sequence[Name], Meta(max_length=16)]
ParentJids = Annotated[Sequence[Name], Meta(max_length=450)]
"""The jobs that one waits for by one put; `depend` adds more."""

# Numbers.

Priority = Annotated[int, Meta(ge=-4095, le=4095)]
Retries = Annotated[int, Meta(ge=0, le=1000)]
Losses = Annotated[int, Meta(ge=0, le=254)]
Backlog = Annotated[int, Meta(ge=0, le=1_000_000)]
Maximum = Annotated[int, Meta(ge=0, le=2**32 - 1)]
"""Of a throttle; 0: any number."""
Whole = Annotated[int, Meta(ge=0, le=MAX_WHOLE)]
Count = Annotated[int, Meta(ge=0, le=10_000)]
"""Of a page."""
Limit = Annotated[int, Meta(ge=1, le=1000)]
"""Of jobs or messages that one call takes."""
Level = Annotated[int, Meta(ge=0, le=15)]
"""What a worker understands, or a job needs of its worker: 1 since release 0.3, 0 before."""

# Times and parts.

Milliseconds = Annotated[int, Meta(ge=0, le=_CENTURY_MS)]
Offset = Annotated[int, Meta(ge=-_CENTURY_MS, le=_CENTURY_MS)]
"""Milliseconds from now; negative ones are in the past."""
LeaseSeconds = Annotated[float, Meta(ge=0, le=86_400)]
"""0: as long as the queue sets it."""
Fraction = Annotated[float, Meta(ge=0, le=1)]


@cache
def meta(kind: Any) -> Meta:
    """Return the bounds of one of these types."""
    return next(one for one in get_args(kind) if isinstance(one, Meta))


def limits(kind: Any) -> tuple[int, int]:
    """Return the smallest and the largest value of a type of numbers."""
    found = meta(kind)
    assert found.ge is not None
    assert found.le is not None
    return int(found.ge), int(found.le)


def most(kind: Any) -> int:
    """Return the largest length of a type of names or lists."""
    found = meta(kind).max_length
    assert found is not None
    return found


# The same for the core.

_LUA: Final = {
    "NAME": most(Name),
    "TAGS": most(TagNames),
    "THROTTLES": most(ThrottleNames),
    "BATCH": MAX_BATCH,
    "PRIORITY": limits(Priority)[1],
    "RETRIES": limits(Retries)[1],
    "LOSSES": limits(Losses)[1],
    "BACKLOG": limits(Backlog)[1],
    "MAXIMUM": limits(Maximum)[1],
    "WHOLE": MAX_WHOLE,
    "LIMIT": limits(Limit)[1],
    "COUNT": limits(Count)[1],
    "LEVELS": limits(Level)[1],
    "CENTURY": _CENTURY_MS,
    "MONTH": MAX_PAUSE_MS,
    "LEASE": limits(LeaseSeconds)[1] * 1000,
}


def in_lua() -> str:
    """Return the text of `core/lua/base/bounds.lua`, which `make docs` writes."""
    lines = (f"M.{name} = {value}" for name, value in _LUA.items())
    kind, *numbers = DEFAULT_BACKOFF
    backoff = f'M.BACKOFF = {{ "{kind}", {", ".join(map(str, numbers))} }}'
    return "\n".join((_HEAD, *lines, backoff, "", "return M", ""))


_HEAD: Final = """\
-- bounds: the largest values that the core takes; times are in ms. Written by `make docs` from bounds.py.
local M = {}
"""
