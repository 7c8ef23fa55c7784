"""The sample of the tests that `make test` runs: most test functions, but not with all of their parameters.

Of engines, pools, kinds of clients and arrivals, each test runs with one, and of a family (the members of a test function) with
many members only a part runs: `sampled(share)` sets how many. `sampled(share, of="file")` is about the functions of a file, where
each takes long. One runs always.

HOLDFAST_SAMPLE chooses which: `make test` sets it to the date, so that each day runs another sample, and a day can be repeated.
Where it is not set, or `all`, everything runs.
"""

import os
from collections.abc import Hashable, Iterable
from hashlib import blake2b
from math import ceil, log
from pathlib import Path

import pytest

SEED = os.environ.get("HOLDFAST_SAMPLE") or "all"

ONE_OF = frozenset(
    {"engine", "do", "hire", "speaker", "colour", "pool", "forking_pool", "ward", "arrival", "either"}
)
"""Parameters of which one value is enough for a day."""

WEIGHTS = {"valkey": 7, "process": 4, "asyncio": 2, "delayed": 3, "holdfast": 4}
"""How often a value comes, compared with one of 1."""

SMALL = 3
SHARE = 0.2
"""A family of so many members runs whole; of a larger one so many run, and then this share of all, if that is more."""


def draw(name: str) -> float:
    """A number between 0 and 1 that is the same for a name and a seed everywhere."""
    digest = blake2b(f"{SEED} {name}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return (int.from_bytes(digest) + 1) / (2**64 + 2)


def sample(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The items that run."""
    families: dict[Hashable, list[pytest.Item]] = {}
    for item in items:
        name = getattr(item, "originalname", item.name)
        families.setdefault((item.parent, name), []).append(item)
    of_files: dict[Path, list[list[pytest.Item]]] = {}
    for family in families.values():
        of_files.setdefault(family[0].path, []).append(some_of(family))
    return {item for functions in of_files.values() for some in some_functions(functions) for item in some}


def some_functions(functions: list[list[pytest.Item]]) -> list[list[pytest.Item]]:
    """The functions of a file that run, each with its members."""
    shares = {id(some): share_of(some[0], "file") for some in functions}
    drawn = sorted((some for some in functions if shares[id(some)]), key=lambda some: draw(some[0].nodeid))
    if not drawn:
        return functions
    count = max(1, ceil(len(drawn) * max(share or 0.0 for share in shares.values())))
    return [some for some in functions if not shares[id(some)]] + drawn[:count]


def share_of(item: pytest.Item, of: str) -> float | None:
    """What a marker says about the members of its function, or of its file."""
    found = [mark for mark in item.iter_markers("sampled") if mark.kwargs.get("of", "function") == of]
    return float(found[0].args[0]) if found else None


def some_of(family: list[pytest.Item]) -> list[pytest.Item]:
    """The members of a family that run: one at least."""
    if len(family) == 1:
        return family
    groups: dict[Hashable, list[pytest.Item]] = {}
    for item in family:
        groups.setdefault(what_varies(item), []).append(item)
    members = sorted(
        (min(group, key=turn_of) for group in groups.values()), key=lambda item: draw(item.nodeid)
    )
    return members[: count_of(members)]


def what_varies(item: pytest.Item) -> Hashable:
    """The parameters of an item of which all values count; those of a family share their values."""
    return tuple((name, id(value)) for name, value in params_of(item).items() if name not in ONE_OF)


def turn_of(item: pytest.Item) -> float:
    """The smallest has its turn; a value with twice the weight has it twice as often."""
    weight = 1
    for name, value in params_of(item).items():
        weight *= WEIGHTS.get(str(value), 1) if name in ONE_OF else 1
    return -log(draw(f"turn {item.nodeid}")) / weight


def params_of(item: pytest.Item) -> dict[str, object]:
    call = getattr(item, "callspec", None)
    return call.params if call else {}


def count_of(members: list[pytest.Item]) -> int:
    """How many of these run."""
    share = share_of(members[0], "function")
    if share is not None:
        return max(1, ceil(len(members) * share))
    return max(min(len(members), SMALL), ceil(len(members) * SHARE))
