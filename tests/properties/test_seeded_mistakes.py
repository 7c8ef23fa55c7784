"""The tests find mistakes: the model those of the core, and single tests those of the files that they are about.

A mistake of `mistakes` and `mistakes_of_features` may take the model a thousand random sequences, of which `make test` has
twenty, other ones each day: that all are found is checked by `make test-all`.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from mistakes import MISTAKES, Mistake
from mistakes_in_files import MISTAKES_IN_FILES, FileMistake
from mistakes_of_features import MISTAKES_OF_FEATURES
from rules_always import CoreAndModel

from holdfast.client.sync import Client
from holdfast.core.library import library
from holdfast.testing.store import ScratchStore
from native_door import Door

TESTS = Path(__file__).parents[1]
ALL = [*MISTAKES, *MISTAKES_OF_FEATURES]
SEARCH = settings(
    max_examples=4000,
    stateful_step_count=60,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    with ScratchStore() as store, Client(store.url, namespace="test-mistakes") as client:
        yield Door(client)


def load(door: Door, text: str) -> type[CoreAndModel]:
    door.ask("FUNCTION", "LOAD", "REPLACE", text)
    made: Any = type("Machine", (CoreAndModel,), {"door": door})
    return made


def test_mistakes_still_fit_the_core() -> None:
    for mistake in ALL:
        assert mistake.made_in(library().text) != library().text


@pytest.mark.full
@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.name)
def test_the_model_finds(mistake: Mistake, door: Door) -> None:
    machine = load(door, mistake.made_in(library().text))
    try:
        run_state_machine_as_test(machine, settings=SEARCH)
    except Exception:
        return  # a reply that differs, or one that cannot even be read
    pytest.fail("the mistake escaped")


def test_mistakes_in_files_still_fit() -> None:
    assert [mistake.name for mistake in MISTAKES_IN_FILES if len(mistake.places()) != 1] == []


@pytest.mark.full
@pytest.mark.parametrize("mistake", MISTAKES_IN_FILES, ids=lambda mistake: mistake.name)
def test_a_test_finds(mistake: FileMistake, tmp_path: Path) -> None:
    mistake.make_in(tmp_path)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", mistake.found_by],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": path, "HOLDFAST_TESTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout


def test_the_tests_that_find_mistakes_in_files_run_every_day() -> None:
    left_out = []
    for found_by in {mistake.found_by for mistake in MISTAKES_IN_FILES}:
        path, _, name = found_by.partition("::")
        text = (TESTS / path).read_text()
        before = text[: text.index(f"def {name}(")].rpartition("\n\n\n")[2]
        if "mark.full" in before or "pytestmark = pytest.mark.full" in text:
            left_out.append(found_by)
    assert left_out == []
