"""Which tests `make test` runs: the same every day. `make test-all` runs all.

`@pytest.mark.full`, on a function or a file: only `make test-all` runs it.

Of a family, a test function with its parameters, `make test` runs a covering set: each value of each parameter at least once. Of engines, pools,
kinds of clients (`KINDS`), where one value stands for the others, the first is enough; with `@pytest.mark.each` every one runs.
Of that set three members run, evenly spread; `@pytest.mark.few(8)`: eight.

HOLDFAST_TESTS=everyday selects so; where it is not set, everything runs.

HOLDFAST_SHARD=1/3 (`make test-all SHARD=1/3`) leaves the first third of the files: the sorted files are dealt out in turn, so the three shards have
each file once.
"""

import os
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

Member = TypeVar("Member")
"""An item, or what will be one: it has `params` and marks."""

EVERYDAY: Final = os.environ.get("HOLDFAST_TESTS") == "everyday"

SHARD: Final = os.environ.get("HOLDFAST_SHARD", "")
"""`1/3` to `3/3`, or any other number of parts; empty for all files."""

TESTS: Final = Path(__file__).parent

FEW: Final = 3
"""The number of members of a family that run every day, if its mark has no other."""

KINDS: Final = frozenset(
    {"engine", "do", "hire", "speaker", "colour", "pool", "forking_pool", "ward", "arrival", "either"}
)
"""Parameters of which one value is enough for a test that is not about them."""


def is_full(node: pytest.Collector | pytest.Function, thing: object = None) -> bool:
    """Whether a function, or what contains it, is marked to run in `make test-all` only."""
    own: Any = getattr(thing, "pytestmark", [])
    return node.get_closest_marker("full") is not None or any(mark.name == "full" for mark in own)


def divided(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the items that run every day and those that do not, both in their order."""
    families: dict[Hashable, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function):
            families[item.parent, item.originalname].append(item)
    left_out = {item for family in families.values() for item in family} - {
        item for family in families.values() for item in daily_members(family)
    }
    return [item for item in items if item not in left_out], [item for item in items if item in left_out]


def daily_members(family: Sequence[pytest.Function]) -> list[pytest.Function]:
    """Return the members of a family that run every day: of the items that one test function and its parameters became."""
    members = [item for item in family if item.get_closest_marker("full") is None]
    if len(members) < 2:
        return members
    few = members[0].get_closest_marker("few")
    every_kind = members[0].get_closest_marker("each") is not None
    kept = covering([item.callspec.params for item in members], every_kind)
    return [members[at] for at in spread(kept, few.args[0] if few else FEW)]


def shard_of(files: Sequence[Path], shard: str) -> list[Path]:
    """Return the files of a shard such as `2/3`. Raises pytest.UsageError if it is not one."""
    parts = re.fullmatch(r"(\d+)/(\d+)", shard)
    number, count = (int(parts[1]), int(parts[2])) if parts else (0, 0)
    if not 1 <= number <= count:
        raise pytest.UsageError(f"HOLDFAST_SHARD: expected a number and a count such as 1/3, got {shard!r}")
    return sorted(files)[number - 1 :: count]


@cache
def in_shard() -> frozenset[Path]:
    """Return the test files that run: those of `SHARD`, or all."""
    files = list(TESTS.rglob("test_*.py"))
    return frozenset(shard_of(files, SHARD) if SHARD else files)


def covering(members: Sequence[dict[str, object]], every_kind: bool = False) -> list[int]:
    """Return the places of members that have each value of each parameter, in order; of kinds the first value alone, if not `every_kind`."""
    firsts: dict[str, object] = {}
    if not every_kind:
        for member in members:
            for name, value in member.items():
                if name in KINDS:
                    firsts.setdefault(name, value)
    allowed = [
        at
        for at, member in enumerate(members)
        if all(member[name] is first for name, first in firsts.items() if name in member)
    ]
    seen: set[Hashable] = set()
    kept: list[int] = []
    for at in allowed:
        values = {(name, id(value)) for name, value in members[at].items()}
        if not values <= seen:
            kept.append(at)
            seen |= values
    return kept or ([allowed[0]] if allowed else [])


def spread(members: Sequence[Member], count: int) -> list[Member]:
    """Return `count` of some members, evenly spread, the first and the last among them."""
    if count >= len(members) or count < 1:
        return list(members)
    if count == 1:
        return [members[0]]
    return [members[round(at * (len(members) - 1) / (count - 1))] for at in range(count)]
