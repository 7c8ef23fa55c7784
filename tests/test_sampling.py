"""What `make test` runs of the tests: a sample that is the same for a day and all of them over some weeks."""

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sampling


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the seed."""
    return lambda seed: monkeypatch.setattr(sampling, "SEED", seed)


def family(name: str, mark: Any = None, file: str = "test_a.py", **params: list[Any]) -> list[Any]:
    marks = [mark] if mark else []
    return [
        SimpleNamespace(
            name=f"{name}[{values}]",
            originalname=name,
            nodeid=f"{file}::{name}[{values}]",
            parent=file,
            path=Path(file),
            callspec=SimpleNamespace(params=dict(zip(params, values, strict=True))),
            iter_markers=lambda _: iter(marks),
        )
        for values in product(*params.values())
    ]


def sampled(*families: list[Any]) -> list[str]:
    items = [Hashed(item) for items in families for item in items]
    return sorted(item.nodeid for item in sampling.sample(items))  # type: ignore[type-var]


class Hashed:
    """An item: a namespace has no hash."""

    def __init__(self, item: Any) -> None:
        self.__dict__.update(vars(item))


def test_a_sample_is_the_same_for_a_day_and_another_on_the_next(day) -> None:
    items = family("test_words", word=list(range(200)))
    day("2026-11-23")
    first = sampled(items)
    assert sampled(list(reversed(items))) == first
    assert len(first) == 20
    day("2026-11-24")
    assert sampled(items) != first


def test_every_member_has_its_day(day) -> None:
    items, seen = family("test_words", engine=["valkey", "redis"], word=list(range(20))), set()
    for number in range(700):
        day(str(number))
        seen.update(sampled(items))
    assert len(seen) == 40


def test_every_function_runs_and_a_small_family_with_one_word_on_one_engine(day) -> None:
    for seed in ("a", "b", "c"):
        day(seed)
        found = sampled(family("test_one"), family("test_two", engine=["valkey", "redis"], word=["x", "y"]))
        assert [name.partition("[")[0] for name in found] == ["test_a.py::test_one", "test_a.py::test_two"]


def test_of_directories_that_guard_less_a_part_of_the_functions_runs_and_those_that_find_mistakes_daily(
    day,
) -> None:
    seen: set[str] = set()
    daily = [family(f"test_{n}", file="tests/client/test_bulk.py", word=["x"]) for n in range(4)]
    for number in range(60):
        day(str(number))
        functions = [family(f"test_{n}", file="tests/client/test_a.py", word=["x"]) for n in range(10)]
        found = set(sampled(*functions, *daily))
        assert len(found) == 4 + len(daily)
        assert found >= {one.nodeid for [one] in daily}
        seen |= found
    assert len(seen) == 10 + len(daily)


def test_a_long_search_runs_on_a_share_of_the_days(day) -> None:
    search = family("test_search", pytest.mark.sampled(0.4, of="days").mark, pool=["process", "fork"])
    runs = 0
    for number in range(200):
        day(str(number))
        found = sampled(search, family("test_unmarked"))
        assert "test_a.py::test_unmarked[()]" in found
        runs += len(found) - 1
    assert 60 <= runs <= 100


def test_a_share_may_be_set_for_a_function_and_for_the_functions_of_a_file(day) -> None:
    day("a")
    assert len(sampled(family("test_rare", pytest.mark.sampled(0.01).mark, word=list(range(50))))) == 1
    long = [
        family(f"test_{n}", pytest.mark.sampled(0.25, of="file").mark, pool=["process", "fork"])
        for n in range(8)
    ]
    assert len(sampled(*long)) == 2
    assert len(sampled(*long, family("test_unmarked"))) == 3
