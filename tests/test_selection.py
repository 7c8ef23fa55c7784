"""What `make test` runs of the tests: the same every day."""

import os
import re
import shutil
import subprocess
import sys
from itertools import chain, product
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
    found = [name.partition("::")[2] for name in collected(tmp_path, HOLDFAST_TESTS=which)]
    assert (found if isinstance(count, list) else len(found)) == count


def collected(folder: Path, **given: str) -> list[str]:
    """Return the ids of the tests in a folder that a run would have, under our `conftest.py`."""
    for name in ("conftest.py", "selection.py"):
        shutil.copy(TESTS / name, folder)
    done = collect(folder, given)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def collect(folder: Path, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    settings = ["-c", str(TESTS.parent / "pyproject.toml"), "-o", "addopts=-p no:django"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *settings, str(folder)],
        cwd=folder, env={"PATH": "", "PYTHONPATH": str(folder), **given}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_three_shards_together_have_each_test_exactly_once(tmp_path: Path) -> None:
    for at in range(8):
        folder = tmp_path / ("deep" if at % 2 else "")
        folder.mkdir(exist_ok=True)
        (folder / f"test_{at}.py").write_text(f"def test_{at}(): pass\ndef test_more(): pass\n")
    shards = [collected(tmp_path, HOLDFAST_SHARD=f"{number}/3") for number in (1, 2, 3)]
    assert sorted(chain(*shards)) == sorted(collected(tmp_path))
    assert [len(shard) for shard in shards] == [6, 6, 4]


@pytest.mark.full
def test_three_shards_together_have_each_test_of_holdfast_exactly_once() -> None:
    def found(shard: str) -> list[str]:
        done = collect(TESTS, {"HOLDFAST_SHARD": shard, "PATH": os.environ["PATH"]})
        assert done.returncode == 0, done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if "::" in line]

    shards = [found(f"{number}/3") for number in (1, 2, 3)]
    assert sorted(chain(*shards)) == sorted(found(""))
    assert min(map(len, shards)) > 1000


@pytest.mark.parametrize("shard", ["4/3", "0/3", "1", "a/b", "1/0", "-1/3"])
def test_a_shard_that_cannot_be_is_refused(shard: str) -> None:
    with pytest.raises(pytest.UsageError, match="expected a number and a count such as 1/3, got"):
        selection.shard_of([], shard)


def test_a_run_of_a_shard_that_cannot_be_ends_at_once(tmp_path: Path) -> None:
    for name in ("conftest.py", "selection.py"):
        shutil.copy(TESTS / name, tmp_path)
    done = collect(tmp_path, {"HOLDFAST_SHARD": "4/3"})
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "got '4/3'" in done.stderr


def test_what_a_run_is_is_decided_without_private_names_of_pytest() -> None:
    """A release of pytest may change them without a word."""
    private = re.compile(
        r"\b_pytest\b|\b(?:config|session|item|node|metafunc|request|collector|pyfuncitem|call)\._[a-z]"
    )
    paths = [*TESTS.rglob("conftest.py"), TESTS / "selection.py"]
    assert {path.name: found for path in paths if (found := private.findall(path.read_text()))} == {}
