"""Which tests `make test` runs: the same every day. `make test-all` runs all.

`@pytest.mark.full`, on a function or a file: only `make test-all` runs it.

Of a family, a test function with its parameters, `make test` runs a covering set: each value of each parameter at least once. Of engines, pools,
kinds of clients (`KINDS`), where one value stands for the others, the first is enough; with `@pytest.mark.each` every one runs.
Of that set three members run, evenly spread; `@pytest.mark.few(8)`: eight.

HOLDFAST_TESTS=everyday selects so; where it is not set, everything runs.
"""

import os
from collections.abc import Hashable, Sequence
from typing import Any, Final, TypeVar

import pytest

Member = TypeVar("Member")
"""An item, or what will be one: it has `params` and marks."""

EVERYDAY: Final = os.environ.get("HOLDFAST_TESTS") == "everyday"

FEW: Final = 3
"""So many members of a family run every day, if its mark has no other number."""

KINDS: Final = frozenset(
    {"engine", "do", "hire", "speaker", "colour", "pool", "forking_pool", "ward", "arrival", "either"}
)
"""Parameters of which one value is enough for a test that is not about them."""


def is_full(node: pytest.Collector | pytest.Function, thing: object = None) -> bool:
    """Whether a function, or what contains it, is marked to run in `make test-all` only."""
    own: Any = getattr(thing, "pytestmark", [])
    return node.get_closest_marker("full") is not None or any(mark.name == "full" for mark in own)


def keep_members(metafunc: pytest.Metafunc) -> None:
    """Leave the members of a family that run every day, before items are made of them: that takes longer than many of them run."""
    definition = metafunc.definition
    calls = [call for call in metafunc._calls if not any(mark.name == "full" for mark in call.marks)]
    few = definition.get_closest_marker("few")
    kept = covering([call.params for call in calls], definition.get_closest_marker("each") is not None)
    metafunc._calls[:] = [calls[at] for at in spread(kept, few.args[0] if few else FEW)]


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
