"""Fixtures: our door, and the reference beside it."""

from collections.abc import Iterator

import pytest
from reference import PACKAGE, reference_text
from two_doors import Door

from holdfast.core.builder import script
from holdfast.testing import ScratchStore


@pytest.fixture
def door(engine_store: ScratchStore) -> Iterator[Door]:
    """Our door on each engine, in an empty database."""
    made = Door(engine_store.socket_path, script("doors.reqless"), 1)
    made.flush()
    yield made
    made.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if reference_text() is None:
        terminalreporter.write_line(
            f"LOUD SKIP: {PACKAGE} cannot be fetched, so nothing was compared with it", red=True, bold=True
        )
