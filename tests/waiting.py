"""Waiting for something to become true, in tests: with a deadline, and without a fixed sleep."""

import os
import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

_never = threading.Event()

LONGER = int(os.environ.get("HOLDFAST_SEARCH", "1"))
"""By how much the long searches of `make test-all` are longer than usual: 4 for a night."""


def pause(seconds: float) -> None:
    """Let a moment of a race pass; for choosing where in time something happens, never for its result."""
    _never.wait(seconds)


def until(condition: Callable[[], T], what: str, within: float = 30.0) -> T:
    """Wait until `condition` answers something true, and answer that. Fails after `within` seconds."""
    deadline = monotonic() + within
    while not (found := condition()):
        assert monotonic() < deadline, f"not within {within:g} s: {what}"
        pause(0.01)
    return found
