"""Our door against the reference, on random sequences."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from reference import reference_text
from sequences import Machine
from two_doors import Door

from holdfast.core.builder import script
from holdfast.testing import ScratchStore


@pytest.fixture
def machine(engine_store: ScratchStore) -> Iterator[type[Machine]]:
    text = reference_text()
    if text is None:
        pytest.skip("the reference cannot be fetched")
    path = engine_store.socket_path
    Machine.reference, Machine.ours = Door(path, text, 0), Door(path, script("doors.reqless"), 1)
    yield Machine
    Machine.reference.close()
    Machine.ours.close()


def run(machine: type[Machine], sequences: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=sequences,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_both_cores_answer_alike(machine: type[Machine], engine_store: ScratchStore) -> None:
    run(machine, 150 if engine_store.engine == "valkey" else 30, 30)


@pytest.mark.slow
def test_both_cores_answer_alike_for_longer(machine: type[Machine], engine_store: ScratchStore) -> None:
    run(machine, 3000 if engine_store.engine == "valkey" else 500, 60)
