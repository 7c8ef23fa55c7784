"""Fixtures: our doors, and the references beside them."""

from collections.abc import Iterator

import pytest
from older_words import Older
from reference import OLDER_PACKAGE, PACKAGE, older_reference_text, reference_text
from stories import popped, put
from two_doors import Door

from holdfast.core.texts import bundle
from holdfast.testing import ScratchStore


@pytest.fixture
def door(engine_store: ScratchStore) -> Iterator[Door]:
    """Our door on each engine, in an empty database."""
    made = Door(engine_store.socket_path, bundle("doors.reqless"), 1)
    made.flush()
    yield made
    made.close()


@pytest.fixture
def running(door: Door) -> Door:
    """One job, `j` of queue `q`, popped by `w` at 10."""
    put(door, 1, "j")
    popped(door, 10)
    door.messages()
    return door


def emptied(store: ScratchStore, text: str) -> Iterator[Older]:
    made = Older(store.socket_path, text, 1)
    made.flush()
    made.messages()
    yield made
    made.close()


@pytest.fixture
def older(engine_store: ScratchStore) -> Iterator[Older]:
    """Our door of the protocol before."""
    yield from emptied(engine_store, bundle("doors.qless"))


@pytest.fixture(params=("holdfast", "reference"))
def either(request: pytest.FixtureRequest, engine_store: ScratchStore) -> Iterator[Older]:
    """That door, then its reference: a story that both tell is one of the protocol."""
    text = bundle("doors.qless") if request.param == "holdfast" else older_reference_text()
    if text is None:
        pytest.skip("the older reference cannot be fetched")
    yield from emptied(engine_store, text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, text in report.user_properties:
            if name == "told" and report.when == "call":
                terminalreporter.write_line(str(text))
    for package, text in ((PACKAGE, reference_text()), (OLDER_PACKAGE, older_reference_text())):
        if text is None:
            terminalreporter.write_line(
                f"LOUD SKIP: {package} cannot be fetched, so nothing was compared with it",
                red=True,
                bold=True,
            )
