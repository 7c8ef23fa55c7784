"""Our door against the reference, on random sequences."""

from collections.abc import Iterator
from typing import Any

import pytest
from chooser import Chooser
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pair import Pair
from sequences import Doors, Sequence
from speech import Speech

from holdfast.core.builder import script
from holdfast.testing import ScratchStore

SPEECHES = [Speech()]


@pytest.fixture(params=SPEECHES, ids=lambda speech: speech.door)
def doors(engine_store: ScratchStore, request: pytest.FixtureRequest) -> Iterator[Doors]:
    text = request.param.text()
    if text is None:
        pytest.skip("the reference cannot be fetched")
    pair = Pair(engine_store.socket_path, text, script(request.param.door))
    yield Doors(pair, request.param)
    pair.close()


def run(doors: Doors, sequences: int, **more: Any) -> None:
    @settings(
        max_examples=sequences,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        **more,
    )
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        Sequence(doors, Chooser(data)).run()

    compare()


def test_both_cores_answer_alike(doors: Doors, engine_store: ScratchStore) -> None:
    run(doors, 400 if engine_store.engine == "valkey" else 100, derandomize=True)
