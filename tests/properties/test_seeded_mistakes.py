"""The model test bites: it finds each of these mistakes when it is made in the core."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from mistakes import MISTAKES, Mistake
from mistakes_of_features import MISTAKES_OF_FEATURES
from rules_always import CoreAndModel

from holdfast.client.sync import Client
from holdfast.core.library import library
from holdfast.testing.store import ScratchStore
from native_door import Door

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


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.name)
def test_the_model_finds(mistake: Mistake, door: Door) -> None:
    machine = load(door, mistake.made_in(library().text))
    try:
        run_state_machine_as_test(machine, settings=SEARCH)
    except Exception:
        return  # a reply that differs, or one that cannot even be read
    pytest.fail("the mistake escaped")
