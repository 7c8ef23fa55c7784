"""What `make test` runs of the tests: the same every day."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import selection

TESTS = Path(__file__).parent


def members(**values: list[object]) -> list[dict[str, object]]:
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


def kept(family: list[dict[str, object]], every_kind: bool = False) -> list[dict[str, object]]:
    return [family[at] for at in selection.covering(family, every_kind)]


def test_each_value_of_each_parameter_is_kept_and_of_kinds_the_first() -> None:
    family = members(word=["a", "b", "c"], size=["x", "y"], engine=["valkey", "redis"])
    found = kept(family)
    assert {one["word"] for one in found} == {"a", "b", "c"}
    assert {one["size"] for one in found} == {"x", "y"}
    assert {one["engine"] for one in found} == {"valkey"}
    assert len(found) < len(family) / 2


def test_a_test_of_kinds_alone_runs_once_and_with_each_for_all_of_them() -> None:
    family = members(pool=["process", "fork", "thread"], engine=["valkey", "redis"])
    assert kept(family) == [{"pool": "process", "engine": "valkey"}]
    found = kept(family, every_kind=True)
    assert {one["pool"] for one in found} == {"process", "fork", "thread"}
    assert {one["engine"] for one in found} == {"valkey", "redis"}


@pytest.mark.parametrize(("size", "count"), [(1, 1), (10, 3), (10, 10), (3, 8), (10, 1)])
def test_members_are_evenly_spread(size: int, count: int) -> None:
    found = selection.spread(list(range(size)), count)
    assert len(found) == min(size, count)
    assert found[0] == 0
    if count > 1:
        assert found[-1] == size - 1
    assert found == sorted(set(found))


STORY = """
import pytest

@pytest.mark.full
def test_long(): pass

@pytest.mark.few(2)
@pytest.mark.parametrize("n", range(9))
def test_many(n): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.full), 3])
def test_some(n): pass

@pytest.mark.full
class TestAll:
    def test_inside(self): pass

def test_plain(): pass
"""


@pytest.mark.parametrize(
    ("which", "count"),
    [("everyday", ["test_many[0]", "test_many[8]", "test_some[1]", "test_some[3]", "test_plain"]), ("", 15)],
)
def test_marks_leave_tests_to_the_whole_run(which: str, count: list[str] | int, tmp_path: Path) -> None:
    (tmp_path / "test_story.py").write_text(STORY)
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-c", str(TESTS.parent / "pyproject.toml"), "-o", "addopts=-p no:django",
         str(tmp_path)],
        cwd=tmp_path, env={"PATH": "", "HOLDFAST_TESTS": which, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    found = [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert (found if isinstance(count, list) else len(found)) == count, done.stdout + done.stderr
