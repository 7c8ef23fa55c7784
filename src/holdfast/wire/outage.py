"""What a process knows of a store that is unavailable, and how it waits until the store can be reached again.

    a call failed         nobody opens a connection for a moment, then one, then another a little later …
    at last               about one a second for the whole process, however many clients and threads it has
    a call was answered   everybody may again

No lock guards this: two threads that knock at the same moment do no harm, and a fork finds nothing locked.
"""

import logging
import random
from collections.abc import Callable
from time import monotonic
from typing import Final
from weakref import WeakValueDictionary

from holdfast.errors import HoldfastError, TransportError

FIRST: Final = 0.05
LONGEST: Final = 1.05
GLANCE: Final = 0.25
"""Seconds after which who may not knock looks again: by then another one may have found the store."""


def _nobody() -> None:
    """Nobody counts."""


class Notice:
    """Something that happens, and who in this process is told of it."""

    def __init__(self) -> None:
        self.told: Callable[[], None] = _nobody


OUTAGES: Final = Notice()
"""A store was found to be away."""


class ReconnectGate:
    """Whether one store is away.

    `failing`: no call was answered since one failed, for `reason`; whoever gets an answer sets it back. `is_said`: people
    were told, and not yet told that it is back.
    """

    __slots__ = ("__weakref__", "_next", "_pause", "_since", "failing", "is_said", "reason")

    def __init__(self) -> None:
        self.failing = False
        self.reason = ""
        self._next = 0.0
        self._pause = FIRST
        self.is_said = False
        self._since = 0.0

    def knock(self) -> float:
        """Ask to open a connection. Answers 0 when that is allowed now, else how many seconds to wait."""
        if not self.failing:
            return 0.0
        now = monotonic()
        left = self._next - now
        if left > 0.0:
            return min(left, GLANCE)
        self._next = now + self._pause * random.uniform(1.0, 1.25)
        self._pause = min(2 * self._pause, LONGEST)
        return 0.0

    def failed(self, error: Exception) -> None:
        """A call, or the opening of a connection, had no answer."""
        self.reason = str(error)
        if not self.failing:
            self.failing = True
            self._pause = FIRST
            self._next = 0.0

    def begins(self) -> bool:
        """Somebody is about to say that the store is away. Answers whether it was not said yet."""
        if self.is_said:
            return False
        self.is_said, self._since = True, monotonic()
        OUTAGES.told()
        return True

    def ends(self) -> float:
        """Somebody found the store back. Answers how many seconds ago it was said to be away, 0 if it was not."""
        if not self.is_said:
            return 0.0
        self.is_said = False
        return monotonic() - self._since


_stores: WeakValueDictionary[str, ReconnectGate] = WeakValueDictionary()


def away_of(url: str) -> ReconnectGate:
    """What this process knows of the store at `url`, shared by all its clients."""
    found = _stores.get(url)
    if found is None:
        found = _stores[url] = ReconnectGate()
    return found


log = logging.getLogger("holdfast")

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 1.0
"""Seconds between two tries: whoever waits longer resumes too late."""


class Outage:
    """Knows how long one kind of call has been failing, in tries.

    `gate` is what the process knows of the store (`shard.away`): with it, a store that cannot be reached is said to be
    away once in the whole process.
    """

    def __init__(self, gate: ReconnectGate | None = None) -> None:
        self._away = gate or ReconnectGate()
        self._tries = 0
        self._is_refused = False

    def pause(self, error: HoldfastError) -> float:
        """Note a failed call. Answers how many seconds to wait before the next, with jitter."""
        if not isinstance(error, TransportError):
            # The store is there, and this call alone fails.
            news, self._is_refused = not self._is_refused, True
        else:
            news = self._away.begins()
        if news:
            log.error("the store cannot be worked with, trying again: %s", error)
        return self.cut_off()

    def cut_off(self) -> float:
        """Note a wait that was cut off: it may have ended with an outage that is over, so the next call tells. Answers as `pause`."""
        wait = min(LONGEST_PAUSE, FIRST_PAUSE * float(1 << min(self._tries, 10)))
        self._tries += 1
        return wait * random.uniform(0.5, 1.0)

    def over(self) -> None:
        """Note a call that worked."""
        if self._tries:
            self._tries = 0
            answers_again(self._away, self._is_refused)
            self._is_refused = False


def answers_again(gate: ReconnectGate, was_refused: bool = False) -> None:
    """Say that the store is back, if it was said that it is away and nobody said this yet."""
    seconds = gate.ends()
    if seconds:
        log.warning("the store is available again, after %.1f s", seconds)
    elif was_refused:
        log.warning("the store is available again")
