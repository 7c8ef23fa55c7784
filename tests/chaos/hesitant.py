"""For `holdfast worker --setup hesitant:install`: bells that are slow where wake-ups could get lost.

The pauses are of random length up to HESITATE seconds: after a pop that found nothing and before the wait for
the bell, and after the bell has rung and before the pop.
"""

import asyncio
import os
import random
from collections.abc import Sequence
from threading import Event
from typing import Any

from holdfast.wire import aio, sync

MOST = float(os.environ.get("HESITATE", "0.005"))
_never = Event()


def some() -> float:
    # Often nothing at all, so that all orders of events are met.
    return random.choice((0.0, random.uniform(0.0, MOST)))


class HesitantBell(sync.WakeUp):
    def send(self, keys: Sequence[str], timeout: float) -> None:
        _never.wait(some())
        super().send(keys, timeout)

    def receive(self) -> str | None:
        key = super().receive()
        _never.wait(some())
        return key


class HesitantAsyncBell(aio.AsyncWakeUp):
    async def wait(self, keys: Sequence[str], timeout: float) -> str | None:
        await asyncio.sleep(some())
        key = await super().wait(keys, timeout)
        await asyncio.sleep(some())
        return key


def install() -> None:
    """Make every link of this process, and of its children, hand out hesitant bells."""
    bells: Any = (sync, aio)
    bells[0].WakeUp, bells[1].AsyncWakeUp = HesitantBell, HesitantAsyncBell
    os.register_at_fork(after_in_child=random.seed)
