"""A test root on one connection: verbs by name, and a clock that benchmarks move."""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.wirecpu import Wire, Word, pack
from holdfast.commands.options import MAX_WEIGHT
from holdfast.core.library import PREFIX, library
from holdfast.testing.store import Engine, ScratchStore

START_MS = 1_700_000_000_000
BATCH = 500
JOB = ("app.send", '{"user":7}')
"""Klass and data of every job."""


class Root:
    """Calls of the native door whose store CPU can be asked for one by one."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.root = "hf:{test-bench}:"
        self.now = START_MS
        self("info", "test", self.now)
        self.asking = statistics.median(self._between() for _ in range(99))

    def _between(self) -> float:
        """What asking for the store's CPU costs by itself, µs."""
        before = self.wire.cpu()
        return self.wire.cpu() - before

    def words(self, verb: str, *words: Word) -> bytes:
        return pack("FCALL", PREFIX + verb, 1, self.root, *words)

    def __call__(self, verb: str, *words: Word) -> Any:
        return self.wire.send([self.words(verb, *words)])[0]

    def timed(self, verb: str, *words: Word) -> tuple[float, Any]:
        """µs of store CPU that this one call took, and its reply."""
        request = self.words(verb, *words)
        before = self.wire.cpu()
        [reply] = self.wire.send([request])
        return max(self.wire.cpu() - before - self.asking, 0.0), reply

    def advance(self, ms: int) -> None:
        self.now += ms
        self("clock", self.now)

    def put(self, queue: str, jids: Sequence[str], delay: int = 0, *wish: Word) -> None:
        """Put jobs of these jids; `wish` are (option, value) pairs that all of them share."""
        verb, tail = ("put_x", (len(wish) // 2, *wish)) if wish else ("put", ())
        step = max(1, MAX_WEIGHT // (3 + len(wish))) if wish else BATCH
        for first in range(0, len(jids), step):
            words = [word for jid in jids[first : first + step] for word in (jid, *JOB, *tail)]
            self(verb, "", 0, "new", queue, 0, 5, delay, *words)

    def pop(self, queue: str, count: int, lease: int = 0) -> list[tuple[bytes, int]]:
        """(jid, token) of up to `count` jobs, taken by `w`."""
        found: list[tuple[bytes, int]] = []
        while len(found) < count:
            reply = self("pop", "w", "", 0, min(BATCH, count - len(found)), lease, queue, 0)
            rows = [reply[i] for i in range(1, len(reply), 4)]
            if not rows:
                break
            found += [(jid, self.now) for jid in rows]
        return found


@contextmanager
def fresh_root(engine: Engine) -> Iterator[Root]:
    """A root in a store of its own."""
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        wire.call("FUNCTION", "LOAD", library().text)
        yield Root(wire)


def jids(count: int, prefix: str = "j") -> list[str]:
    return [f"{prefix}{number:031d}" for number in range(count)]
