"""The sample of the tests that `make test` runs: other tests each day, and each test in time.

A family is a test function with all of its parameters. Of engines, pools, kinds of clients and arrivals it runs with one, and of
many members only a part: `sampled(share)` sets how many. One runs always.

Of the functions of a file all run where tests guard the core, the wire, the doors and the workers. In the directories of `PARTS` a
part of them runs, one at least; `sampled(share, of="file")` sets that for a file. What `DAILY` names runs each day. A long search of
which `make test-all` has a longer one runs on a share of the days: `sampled(share, of="days")`.

HOLDFAST_SAMPLE chooses which: `make test` sets it to the date, so that each day runs another sample, and a day can be repeated.
Where it is not set, or `all`, everything runs.
"""

import os
from collections.abc import Hashable, Iterable
from hashlib import blake2b
from math import ceil, log
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

Member = TypeVar("Member")
"""An item, or what will be one."""

SEED = os.environ.get("HOLDFAST_SAMPLE") or "all"

ONE_OF = frozenset(
    {"engine", "do", "hire", "speaker", "colour", "pool", "forking_pool", "ward", "arrival", "either"}
)
"""Parameters of which one value is enough for a day."""

WEIGHTS = {"valkey": 7, "process": 4, "asyncio": 2, "delayed": 3, "holdfast": 4}
"""How often a value comes, compared with one of 1."""

SHARE = 0.1
"""Of a family so many of its members run, one at least."""

PARTS = {
    "architecture": 0.2,  # `make check` runs them all
    "cli": 0.3,
    "client": 0.4,
    "code": 0.5,
    "commands": 0.5,
    "compat": 0.5,
    "console": 0.3,
    "store": 0.4,
    "testing": 0.5,
    "web": 0.3,
}
"""Of these directories a part of the functions of each file runs."""

DAILY = (
    "client/test_async.py::test_a_call_carries_at_most_512_jobs_and_about_a_mebibyte",
    "client/test_bulk.py::test_",
)
"""Functions of those directories that run each day, by how their ids begin: they find seeded mistakes (tests/properties)."""


def draw(name: str) -> float:
    """A number between 0 and 1 that is the same for a name and a seed everywhere."""
    digest = blake2b(f"{SEED} {name}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return (int.from_bytes(digest) + 1) / (2**64 + 2)


def is_whole_run(config: pytest.Config) -> bool:
    """Whether the sample is all that selects tests: members can be drawn before anything else has looked at them."""
    by_hand = config.option.keyword or any("::" in str(name) for name in config.args)
    return SEED != "all" and config.option.markexpr == "not slow" and not by_hand


def sample(items: Iterable[pytest.Item], are_members_drawn: bool = False) -> set[pytest.Item]:
    """The items that run. `are_members_drawn`: `draw_members` left only those that may."""
    families: dict[Hashable, list[pytest.Item]] = {}
    for item in items:
        name = getattr(item, "originalname", item.name)
        families.setdefault((item.parent, name), []).append(item)
    of_files: dict[Path, list[list[pytest.Item]]] = {}
    for family in families.values():
        some = family if are_members_drawn else some_of(family)
        of_files.setdefault(family[0].path, []).append(some)
    return {item for functions in of_files.values() for some in some_functions(functions) for item in some}


def draw_members(metafunc: pytest.Metafunc) -> None:
    """Leave of a family what runs before items are made of it: making them all takes longer than many of them run."""
    calls = [call for call in metafunc._calls if not any(mark.name == "slow" for mark in call.marks)]
    definition = metafunc.definition
    members = [
        SimpleNamespace(
            nodeid=f"{definition.nodeid}[{call.id}]", callspec=call, iter_markers=definition.iter_markers
        )
        for call in calls
    ]
    if members:
        metafunc._calls[:] = [member.callspec for member in some_of(members)]


def some_functions(functions: list[list[Member]]) -> list[list[Member]]:
    """The functions of a file that run, each with its members."""
    functions = [some for some in functions if is_of_today(some[0])]
    shares = {id(some): share_of_file(some[0]) for some in functions}
    drawn = sorted(
        (some for some in functions if shares[id(some)] < 1), key=lambda some: draw(family_of(some[0]))
    )
    count = max(1, ceil(len(drawn) * max((shares[id(some)] for some in drawn), default=0)))
    return [some for some in functions if shares[id(some)] >= 1] + drawn[:count]


def family_of(item: Any) -> str:
    return item.nodeid.partition("[")[0]


def is_of_today(item: Any) -> bool:
    share = share_of(item, "days")
    return share is None or draw(f"day {family_of(item)}") < share


def share_of_file(item: Any) -> float:
    """How many of the functions like this one run: 1 means that it runs each day."""
    own = share_of(item, "file")
    if own is not None:
        return own
    is_daily = any(f"/{name}" in item.nodeid for name in DAILY)
    return 1.0 if is_daily else PARTS.get(item.path.parent.name, 1.0)


def share_of(item: Any, of: str) -> float | None:
    """What a marker says about the members of its function, the functions of its file, or its days."""
    found = [mark for mark in item.iter_markers("sampled") if mark.kwargs.get("of", "function") == of]
    return float(found[0].args[0]) if found else None


def some_of(family: list[Member]) -> list[Member]:
    """The members of a family that run: one at least."""
    if len(family) == 1:
        return family
    groups: dict[Hashable, list[Member]] = {}
    for item in family:
        groups.setdefault(what_varies(item), []).append(item)
    members = sorted(
        (min(group, key=turn_of) for group in groups.values()), key=lambda item: draw(item.nodeid)
    )
    return members[: count_of(members)]


def what_varies(item: Any) -> Hashable:
    """The parameters of an item of which all values count; those of a family share their values."""
    return tuple((name, id(value)) for name, value in params_of(item).items() if name not in ONE_OF)


def turn_of(item: Any) -> float:
    """The smallest has its turn; a value with twice the weight has it twice as often."""
    weight = 1
    for name, value in params_of(item).items():
        weight *= WEIGHTS.get(str(value), 1) if name in ONE_OF else 1
    return -log(draw(f"turn {item.nodeid}")) / weight


def params_of(item: Any) -> dict[str, object]:
    call = getattr(item, "callspec", None)
    return call.params if call else {}


def count_of(members: list[Any]) -> int:
    """How many of these run."""
    share = share_of(members[0], "function")
    return max(1, ceil(len(members) * (SHARE if share is None else share)))
