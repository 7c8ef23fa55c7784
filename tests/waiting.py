"""Waiting for something to become true, in tests: with a deadline, and without a fixed sleep."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

_never = threading.Event()

LONGER = int(os.environ.get("HOLDFAST_SEARCH", "1"))
"""By how much the long searches of `make test-all` are longer than usual: 4 for a night."""


def pause(seconds: float) -> None:
    """Let a moment of a race pass; for choosing where in time something happens, never for its result."""
    _never.wait(seconds)


async def pause_async(seconds: float) -> None:
    """The same, while the loop goes on."""
    await asyncio.sleep(seconds)


def until(condition: Callable[[], T], what: str, within: float = 30.0) -> T:
    """Wait until `condition` answers something true, and answer that. Fails after `within` seconds."""
    deadline = monotonic() + within
    while not (found := condition()):
        assert monotonic() < deadline, f"not within {within:g} s: {what}"
        pause(0.01)
    return found


async def until_async(condition: Callable[[], T | Awaitable[T]], what: str, within: float = 30.0) -> T:
    """The same, while the loop goes on; the condition may be awaited."""
    deadline = monotonic() + within
    while True:
        found = condition()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        assert monotonic() < deadline, f"not within {within:g} s: {what}"
        await pause_async(0.005)
