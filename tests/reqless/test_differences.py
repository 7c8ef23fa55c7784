"""Our doors against their references, on random sequences."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chooser import Chooser
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition
from names import KIND, STATES
from older_words import OlderSpeech
from pair import Pair
from sequences import Different, Doors, Sequence
from speech import Speech
from wrong_lines import WRONG_LINES, WrongLine

from holdfast.core.texts import bundle
from holdfast.testing import ScratchStore
from waiting import LONGER

SPEECHES = [Speech(), OlderSpeech()]
ROUND = 1000
"""So many sequences share one search of Hypothesis, which remembers them all."""
Search = Callable[..., None]


def search(doors: Doors, sequences: int, **more: Any) -> None:
    @settings(
        max_examples=sequences,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        **{"phases": [Phase.generate, Phase.shrink], **more},
    )
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        Sequence(doors, Chooser(data)).run()

    compare()


def search_through_time(doors: Doors) -> None:
    """A round. It begins anew, once, if the reference did not do twice the same: some of its keys end by the true time."""
    try:
        search(doors, ROUND)
    except FlakyStrategyDefinition:
        search(doors, ROUND)


def opened(store: ScratchStore, speech: Speech) -> Doors:
    text = speech.text()
    if text is None:
        pytest.skip("the reference cannot be fetched")
    return Doors(Pair(store.socket_path, text, bundle(speech.door)), speech)


@pytest.fixture(params=SPEECHES, ids=lambda speech: speech.door)
def doors(engine_store: ScratchStore, request: pytest.FixtureRequest) -> Iterator[Doors]:
    made = opened(engine_store, request.param)
    yield made
    made.pair.close()


@pytest.mark.full
def test_both_cores_answer_alike(doors: Doors, engine_store: ScratchStore) -> None:
    search(doors, 25)


@pytest.mark.full
def test_both_cores_answer_alike_for_long(
    doors: Doors, engine_store: ScratchStore, record_property: Callable[[str, object], None]
) -> None:
    for _ in range(6 * LONGER if engine_store.engine == "valkey" else 1):
        search_through_time(doors)
    record_property("told", f"{doors.speech.door} on {engine_store.engine}: {doors.tally.told()}")
    assert doors.tally.median() >= 25
    if engine_store.engine == "valkey":
        assert seldom(doors) == []


def seldom(doors: Doors) -> list[str]:
    """Commands and states that were met less than 25 times."""
    return [
        f"{command}, {state}: {doors.tally.pairs[command, state]}"
        for command in sorted(doors.commands)
        for state in STATES[KIND[command]]
        if doors.tally.pairs[command, state] < 25 * LONGER
    ]


def test_wrong_lines_still_fit() -> None:
    assert [line.name for line in WRONG_LINES if not line.fits()] == []


@pytest.mark.full
@pytest.mark.parametrize("line", WRONG_LINES, ids=lambda line: line.name)
def test_the_comparison_finds(line: WrongLine, store: ScratchStore, tmp_path: Path) -> None:
    with line.made(tmp_path):
        made = opened(store, SPEECHES[0])
    with pytest.raises(Different):
        search(made, 2000, phases=[Phase.generate], derandomize=True)
    made.pair.close()
