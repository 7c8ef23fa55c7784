"""What a client keeps for the store that holds a namespace. This release keeps a namespace on one shard."""

import logging
import os
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any

from holdfast.ids import new_sequence
from holdfast.models import CoreInfo
from holdfast.settings import Settings
from holdfast.wire.outage import ReconnectGate
from holdfast.wire.plans import Plan, Replies, Step

log = logging.getLogger("holdfast")


class FlushWatch:
    """Time the first flushes of an embedded store, and log once if its disk makes them slow."""

    ENOUGH = 50
    SLOW = 0.003

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times = 0
        self._seconds = 0.0

    @property
    def is_over(self) -> bool:
        """Whether enough flushes were timed."""
        return self._times >= self.ENOUGH

    def timed(self, step: Step) -> Plan[Replies]:
        """Send a step that changes data, and time it."""
        begun = self._clock()
        replies = yield step
        self._times += 1
        self._seconds += self._clock() - begun
        if self.is_over and self._seconds > self.SLOW * self._times:
            log.warning(
                "this disk takes %.1f ms to flush a call; durability='process' would not wait for the disk, "
                "but a power loss, or a crash of the store while the disk is slow, may lose the last two seconds",
                self._seconds / self._times * 1000,
            )
        return replies


def unserved(place: str) -> str:
    """Return the sentence about a store in which no worker was seen."""
    return (
        f"no worker has been seen in {place}: start one there with `holdfast worker`, "
        "or set HOLDFAST_URL to the store of your workers"
    )


class UnservedWatch:
    """Log once that jobs wait in an embedded store in which no worker was seen: its workers may use another store.

    It looks at the first call that comes 30 s after the first put; `place` returns the store and namespace in words.
    """

    AFTER = 30.0

    def __init__(self, clock: Callable[[], float], place: Callable[[], str]) -> None:
        self._clock = clock
        self._place = place
        self._since = inf

    def note(self, command: Any) -> None:
        """Note a command before it is sent: the first put of a job that is to run at once begins the time."""
        if self._since == inf and command.verb in ("put", "put_x") and not getattr(command, "delay_ms", 0):
            self._since = self._clock()

    @property
    def is_due(self) -> bool:
        """Whether it is time to look for workers."""
        return self._clock() - self._since >= self.AFTER

    def warn(self) -> None:
        """Log that no worker was found."""
        log.warning("jobs of this program have waited for %g s, and %s", self.AFTER, unserved(self._place()))


class RequestSequence:
    """A sequence of numbered calls, one at a time; name and number together are the request id of a call."""

    __slots__ = ("name", "number")

    def __init__(self) -> None:
        self.name = new_sequence()
        self.number = 0

    def next(self) -> int:
        """Return the number of the next call."""
        self.number += 1
        return self.number


class RequestSequences:
    """The sequences that are free now. The one used last is used next, so that the store keeps few."""

    __slots__ = ("_free", "_pid")

    def __init__(self) -> None:
        self._free: list[RequestSequence] = []
        self._pid = os.getpid()

    def take(self) -> RequestSequence:
        """Take a free sequence, or a new one. A forked child starts with none."""
        pid = os.getpid()
        if pid != self._pid:
            self._free, self._pid = [], pid
        try:
            return self._free.pop()
        except IndexError:
            return RequestSequence()

    def give(self, sequence: RequestSequence) -> None:
        """Put a sequence back after its call has ended."""
        self._free.append(sequence)


class Shard:
    """One root, and what this client knows about the store that holds it.

    `met`: the store was checked and has our core, and no connection was lost since; `info` is what the core returned
    then. `clock` returns monotonic seconds. If `test_clock_ms` is set before the first call, the root is made a test
    root whose clock is stopped at that time. `flushes` times the first calls of an embedded store, `unserved` looks for its workers. `on_load` is called
    with the digest of the core when this client loads it. `gate` limits reconnects to the store.
    """

    __slots__ = (
        "clock",
        "flushes",
        "gate",
        "info",
        "met",
        "on_load",
        "root",
        "sequences",
        "settings",
        "test_clock_ms",
        "unserved",
    )

    def __init__(self, settings: Settings, clock: Callable[[], float] = monotonic) -> None:
        self.settings = settings
        self.root = "hf:{" + settings.namespace + "}:"
        self.sequences = RequestSequences()
        self.gate = ReconnectGate()
        self.met = False
        self.info: CoreInfo | None = None
        self.clock = clock
        self.test_clock_ms: int | None = None
        self.flushes: FlushWatch | None = None
        self.unserved: UnservedWatch | None = None
        self.on_load: Callable[[str], None] | None = None

    def wake_key(self, queue: str) -> str:
        """Return the wake key at which idle workers wait for jobs of `queue`."""
        return f"{self.root}n:{queue}"

    def fleet_wake_key(self, fleet: str) -> str:
        """Return the wake key at which the idle workers of a fleet wait for jobs of any of its queues."""
        return f"{self.root}N:{fleet}"

    def topic_wake_key(self, topic: str) -> str:
        """Return the wake key at which idle subscriptions wait for messages of `topic`."""
        return f"{self.root}tn:{topic}"

    def result_channel(self, jid: str) -> str:
        """Return the channel for the end of an awaited job; its message is the jid."""
        return f"{self.root}e:r:{jid}"

    def worker_channel(self, worker: str) -> str:
        """Return the channel for the lost and cancelled leases of a worker; its messages are JSON."""
        return f"{self.root}e:w:{worker}"

    def answer_channel(self, question: str) -> str:
        """Return the channel on which a worker answers `question`."""
        return f"{self.root}e:s:{question}"

    def event_channel(self, event: str) -> str:
        """Return the channel for an event of tracked jobs; its message is the jid."""
        return f"{self.root}e:{event}"
