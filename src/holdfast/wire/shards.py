"""Shards: a pure map from queue or jid to shard, and what a client remembers of one shard.

This release keeps a namespace on one shard; the map is where more will be told apart.
"""

import os
from collections.abc import Callable, Sequence
from time import monotonic

from holdfast.ids import new_line
from holdfast.models import CoreInfo
from holdfast.settings import Settings
from holdfast.wire.durability import FlushWatch
from holdfast.wire.outage import ReconnectGate


class Line:
    """One caller that has one numbered call under way at a time; its numbers only grow."""

    __slots__ = ("name", "number")

    def __init__(self) -> None:
        self.name = new_line()
        self.number = 0

    def next(self) -> int:
        """The number of the next call."""
        self.number += 1
        return self.number


class Lines:
    """The lines that are free right now; the one used last is used next, so that few exist in the store."""

    __slots__ = ("_free", "_pid")

    def __init__(self) -> None:
        self._free: list[Line] = []
        self._pid = os.getpid()

    def take(self) -> Line:
        """Take a free line, or a new one. Nothing is inherited over a fork."""
        pid = os.getpid()
        if pid != self._pid:
            self._free, self._pid = [], pid
        try:
            return self._free.pop()
        except IndexError:
            return Line()

    def give(self, line: Line) -> None:
        """Give a line back when its call has ended, however it ended."""
        self._free.append(line)


class Shard:
    """One root, and what this client knows of the store that holds it.

    `met` says whether the store was checked and has our core since the last connection was lost; `info` is what
    the core said then. `clock` is monotonic seconds. A `test_clock_ms` given before the first touch makes
    the root a test root, whose clock stands at that time. `flushes` times the first calls of an embedded store.
    `on_load` is told the digest of the core when this client loads it. `gate` is what the process knows of the store.
    """

    __slots__ = (
        "clock",
        "flushes",
        "gate",
        "info",
        "lines",
        "met",
        "on_load",
        "root",
        "settings",
        "test_clock_ms",
    )

    def __init__(self, settings: Settings, clock: Callable[[], float] = monotonic) -> None:
        self.settings = settings
        self.root = "hf:{" + settings.namespace + "}:"
        self.lines = Lines()
        self.gate = ReconnectGate()
        self.met = False
        self.info: CoreInfo | None = None
        self.clock = clock
        self.test_clock_ms: int | None = None
        self.flushes: FlushWatch | None = None
        self.on_load: Callable[[str], None] | None = None

    def bell_key(self, queue: str) -> str:
        """The list on which an idle worker waits for jobs of `queue`."""
        return f"{self.root}n:{queue}"

    def fleet_wake_key(self, fleet: str) -> str:
        """The list on which idle workers of the same many queues wait for jobs of any of them."""
        return f"{self.root}N:{fleet}"

    def topic_bell_key(self, topic: str) -> str:
        """The list on which an idle subscription waits for messages of `topic`."""
        return f"{self.root}tn:{topic}"

    def result_channel(self, jid: str) -> str:
        """The channel that tells of the end of an awaited job; its message is the jid."""
        return f"{self.root}e:r:{jid}"

    def worker_channel(self, worker: str) -> str:
        """The channel that tells a worker which of its leases were lost or cancelled, as JSON."""
        return f"{self.root}e:w:{worker}"

    def answer_channel(self, question: str) -> str:
        """The channel on which a worker answers a question."""
        return f"{self.root}e:s:{question}"

    def event_channel(self, event: str) -> str:
        """The channel that tells of `event` for tracked jobs; its message is the jid."""
        return f"{self.root}e:{event}"


class Shards:
    """The shards of a namespace: one."""

    __slots__ = ("all",)

    def __init__(self, settings: Settings) -> None:
        self.all = (Shard(settings),)

    def of_queues(self, queues: Sequence[str]) -> Shard:
        """The shard on which `queues` live together."""
        return self.all[0]

    def of_jid(self, jid: str) -> Shard:
        """The shard on which the job lives."""
        return self.all[0]
