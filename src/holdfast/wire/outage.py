"""What a process knows about a store that is unavailable, and how it limits reconnects.

    a call failed          no connection is opened for 0.05 s, then one, then another after a longer pause …
    in the end             about one attempt a second for the whole process, however many clients and threads it has
    a call had a reply     connections are opened without a pause again

There is no lock: two threads that connect at the same moment do no harm, and a fork cannot inherit a held lock.
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
RECHECK: Final = 0.25
"""Seconds after which a waiting caller looks again: another one may have connected meanwhile."""


def _nothing() -> None:
    """The default callback: do nothing."""


class Hook:
    """An event, and the callback of this process for it."""

    def __init__(self) -> None:
        self.callback: Callable[[], None] = _nothing


OUTAGES: Final = Hook()
"""The event that a store has become unavailable."""


class ReconnectGate:
    """Whether one store is unavailable, and when the next connection may be opened.

    `failing`: no call has had a reply since one failed, for `reason`; a link that gets a reply resets it. `is_reported`: the
    outage was logged, and its end was not.
    """

    __slots__ = ("__weakref__", "_next", "_pause", "_since", "failing", "is_reported", "reason")

    def __init__(self) -> None:
        self.failing = False
        self.reason = ""
        self._next = 0.0
        self._pause = FIRST
        self.is_reported = False
        self._since = 0.0

    def wait_time(self) -> float:
        """Return 0 if a connection may be opened now, else the seconds to wait."""
        if not self.failing:
            return 0.0
        now = monotonic()
        left = self._next - now
        if left > 0.0:
            return min(left, RECHECK)
        self._next = now + self._pause * random.uniform(1.0, 1.25)
        self._pause = min(2 * self._pause, LONGEST)
        return 0.0

    def failed(self, error: Exception) -> None:
        """Note that a call had no reply, or a connection could not be opened."""
        self.reason = str(error)
        if not self.failing:
            self.failing = True
            self._pause = FIRST
            self._next = 0.0

    def report_outage(self) -> bool:
        """Note that an outage is about to be logged. Returns whether it was not logged yet."""
        if self.is_reported:
            return False
        self.is_reported, self._since = True, monotonic()
        OUTAGES.callback()
        return True

    def report_recovery(self) -> float:
        """Note that the store is available. Returns how many seconds ago the outage was logged, 0 if it was not."""
        if not self.is_reported:
            return 0.0
        self.is_reported = False
        return monotonic() - self._since


_stores: WeakValueDictionary[str, ReconnectGate] = WeakValueDictionary()


def gate_of(url: str) -> ReconnectGate:
    """Return the gate of the store at `url`, which all clients of this process share."""
    found = _stores.get(url)
    if found is None:
        found = _stores[url] = ReconnectGate()
    return found


log = logging.getLogger("holdfast")

UNAVAILABLE: Final = "the store is unavailable, trying again: %s"
"""The line of the log about an outage, with its reason; one wording, wherever the outage is noticed."""

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 1.0
"""Seconds between two tries."""


class Outage:
    """The pauses between failed calls of one kind, which grow with the number of tries.

    `gate` is the one of the store (`shard.gate`): with it, an outage is logged once in the whole process.
    """

    def __init__(self, gate: ReconnectGate | None = None) -> None:
        self._gate = gate or ReconnectGate()
        self._tries = 0
        self._is_refused = False

    def pause(self, error: HoldfastError) -> float:
        """Note a failed call. Returns the seconds to wait before the next one, with jitter."""
        if not isinstance(error, TransportError):
            if not self._is_refused:
                log.error("the store refuses a call, trying again: %s", error)
            self._is_refused = True
        else:
            log_outage(self._gate, error, logging.ERROR)
        return self.cut_off()

    def cut_off(self) -> float:
        """Note a blocking wait that lost its connection, perhaps by an outage that is over. Returns as `pause`."""
        wait = min(LONGEST_PAUSE, FIRST_PAUSE * float(1 << min(self._tries, 10)))
        self._tries += 1
        return wait * random.uniform(0.5, 1.0)

    def over(self) -> None:
        """Note a call that succeeded."""
        if self._tries:
            self._tries = 0
            log_recovery(self._gate, self._is_refused)
            self._is_refused = False


def log_outage(gate: ReconnectGate, reason: object, level: int = logging.WARNING) -> None:
    """Log that the store is unavailable, unless this process has logged that outage."""
    if gate.report_outage():
        log.log(level, UNAVAILABLE, reason)


def log_recovery(gate: ReconnectGate, was_refused: bool = False) -> None:
    """Log that the store is available again, if an outage was logged and its end was not."""
    seconds = gate.report_recovery()
    if seconds:
        log.warning("the store is available again, after %.1f s", seconds)
    elif was_refused:
        log.warning("the store accepts calls again")
