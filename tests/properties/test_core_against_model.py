"""The core and a plain-Python model get the same calls in random orders and must never differ."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from rules_always import CoreAndModel

from holdfast.client.sync import Client
from holdfast.core.library import library
from holdfast.testing.store import Engine, ScratchStore
from native_door import Door
from waiting import LONGER

COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "print_blob": False,
    "report_multiple_bugs": False,
    "phases": [Phase.generate, Phase.shrink],
    "suppress_health_check": list(HealthCheck),
}
QUICK = settings(max_examples=20, stateful_step_count=50, **COMMON)
DEEP = settings(max_examples=50 * LONGER, stateful_step_count=150, **COMMON)


@pytest.fixture
def machine(engine: Engine) -> Iterator[type[CoreAndModel]]:
    """The machine on a store of its own, which every run empties."""
    with ScratchStore(engine) as store, Client(store.url, namespace="test-model") as client:
        door = Door(client)
        door.ask("FUNCTION", "LOAD", library().text)
        yield type("Machine", (CoreAndModel,), {"door": door})


def test_the_core_does_what_the_model_does(machine: type[CoreAndModel]) -> None:
    run_state_machine_as_test(machine, settings=QUICK)


@pytest.mark.full
def test_the_core_does_what_the_model_does_for_long(machine: type[CoreAndModel]) -> None:
    run_state_machine_as_test(machine, settings=DEEP)
