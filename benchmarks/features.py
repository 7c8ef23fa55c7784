"""What does a feature cost the jobs that use it? Store CPU of a call with it less that of the same call without,
measured in turns; the figures of the design page stand beside."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from secrets import token_hex
from typing import Any

from benchmarks.report import Row, Say, shown
from benchmarks.subjects import Native, rows_of
from benchmarks.wirecpu import Wire
from holdfast.core.library import library
from holdfast.testing.store import Engine, ScratchStore, find_engine

JOBS = 1000
WORKER = "host-1-0"
EXPECTED = {
    "one tag at put": "+2.1 / +2.6",
    "three tags at put": "+3.6 / +4.5",
    "waits for one open job, at put": "+3.1 / +2.7",
    "completion that releases one": "+4.0 / +4.7",
    "a limited queue: the slot, at pop": "+1.3 / +1.2",
    "a limited queue: set aside, at put": "+1.6 / +1.4",
    "a limited queue: release and hand over, at completion": "+1.8",
    "a history line": "+1.5",
    "an event without a subscriber": "+0.15 to 0.4",
}
"""µs by the design page, Valkey / Redis."""


class Bench:
    """One store, and calls on one namespace; each measurement has queues of its own."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire = wire
        self.native = Native(wire, name)
        self.numbers = count(1)

    def cpu(self, calls: Sequence[bytes]) -> tuple[float, list[Any]]:
        """µs a call, and the replies."""
        before = self.wire.cpu()
        replies = self.wire.in_waves(calls, 100)
        return (self.wire.cpu() - before) / len(calls), replies

    def queue(self) -> str:
        return f"q{next(self.numbers)}"

    def put_calls(self, queue: str, jids: Sequence[str]) -> list[bytes]:
        words = ("", 0, "new", queue, 0, 5, 0)
        return [self.native.words("put", *words, jid, "app.send", '{"user":7}') for jid in jids]

    def put_x_calls(
        self, queue: str, jids: Sequence[str], options: Callable[[int], Sequence[str]]
    ) -> list[bytes]:
        words = ("", 0, "new", queue, 0, 5, 0)
        made = []
        for n, jid in enumerate(jids):
            pairs = options(n)
            made.append(
                self.native.words("put_x", *words, jid, "app.send", '{"user":7}', len(pairs) // 2, *pairs)
            )
        return made

    def pop_calls(self, queue: str, calls: int) -> list[bytes]:
        return [self.native.words("pop", WORKER, "", 0, 1, 0, queue, 0) for _ in range(calls)]

    def taken(self, replies: Sequence[Any]) -> list[tuple[bytes, int]]:
        return [row for reply in replies for row in rows_of(reply, 1)]

    def complete_calls(self, held: Sequence[tuple[bytes, int]]) -> list[bytes]:
        return [self.native.words("complete", WORKER, jid, token, "", 0, "") for jid, token in held]

    def running(self, queue: str, jobs: int = JOBS) -> list[tuple[bytes, int]]:
        """Jobs put and popped: (jid, token)."""
        self.wire.in_waves(self.put_calls(queue, minted(jobs)), 100)
        return self.taken(self.wire.in_waves(self.pop_calls(queue, jobs), 100))


def minted(jobs: int = JOBS) -> list[str]:
    """Jids as long as minted ones."""
    return [token_hex(16) for _ in range(jobs)]


def tags(bench: Bench, number: int) -> float:
    words = [word for n in range(number) for word in ("tag", f"tag{n}")]
    cost, _ = bench.cpu(bench.put_x_calls(bench.queue(), minted(), lambda _: words))
    return cost


def bare(bench: Bench) -> float:
    """A put by `put_x` that wishes for nothing."""
    return tags(bench, 0)


def plain_put(bench: Bench) -> float:
    return bench.cpu(bench.put_calls(bench.queue(), minted()))[0]


def waiting(bench: Bench) -> float:
    """A put of a job that waits for a job of its own."""
    parents = minted()
    bench.wire.in_waves(bench.put_calls(bench.queue(), parents), 100)
    return bench.cpu(bench.put_x_calls(bench.queue(), minted(), lambda n: ("depends", parents[n])))[0]


def plain_completion(bench: Bench) -> float:
    return bench.cpu(bench.complete_calls(bench.running(bench.queue())))[0]


def releasing(bench: Bench) -> float:
    """A completion for which one job waits."""
    held = bench.running(bench.queue())
    parents = [jid.decode() for jid, _ in held]
    calls = bench.put_x_calls(bench.queue(), minted(), lambda n: ("depends", parents[n]))
    bench.wire.in_waves(calls, 100)
    return bench.cpu(bench.complete_calls(held))[0]


def limited(bench: Bench, limit: int) -> str:
    queue = bench.queue()
    bench.wire.send([bench.native.words("throttle_set", "", 0, f"ql:q:{queue}", limit, 0)])
    return queue


def plain_pop(bench: Bench) -> float:
    queue = bench.queue()
    bench.wire.in_waves(bench.put_calls(queue, minted()), 100)
    return bench.cpu(bench.pop_calls(queue, JOBS))[0]


def limited_pop(bench: Bench) -> float:
    queue = limited(bench, 2 * JOBS)
    bench.wire.in_waves(bench.put_calls(queue, minted()), 100)
    return bench.cpu(bench.pop_calls(queue, JOBS))[0]


def set_aside(bench: Bench) -> float:
    queue = limited(bench, 1)
    bench.running(queue, 1)
    return bench.cpu(bench.put_calls(queue, minted()))[0]


def handing_over(bench: Bench) -> float:
    """A completion by which a job that was set aside becomes ready."""
    queue = limited(bench, JOBS)
    held = bench.running(queue)
    bench.wire.in_waves(bench.put_calls(queue, minted()), 100)
    return bench.cpu(bench.complete_calls(held))[0]


def told(bench: Bench) -> list[tuple[bytes, int]]:
    """Running jobs that have a history: each was lost to nobody and logged to once."""
    held = bench.running(bench.queue())
    bench.wire.in_waves([bench.native.words("log", "", 0, jid, "begun", "") for jid, _ in held], 100)
    return held


def history_line(bench: Bench) -> float:
    held = told(bench)
    return bench.cpu([bench.native.words("log", "", 0, jid, "half", "") for jid, _ in held])[0]


def tracked_completion(bench: Bench, on: int) -> float:
    held = told(bench)
    bench.wire.in_waves([bench.native.words("track", on, jid) for jid, _ in held], 100)
    return bench.cpu(bench.complete_calls(held))[0]


def no_change(bench: Bench) -> float:
    """A call that reads one record and writes nothing."""
    held = told(bench)
    return bench.cpu([bench.native.words("track", 0, jid) for jid, _ in held])[0]


PAIRS: dict[str, tuple[Callable[[Bench], float], Callable[[Bench], float]]] = {
    "put_x without wishes instead of put": (bare, plain_put),
    "one tag at put": (lambda bench: tags(bench, 1), bare),
    "three tags at put": (lambda bench: tags(bench, 3), bare),
    "waits for one open job, at put": (waiting, bare),
    "completion that releases one": (releasing, plain_completion),
    "a limited queue: the slot, at pop": (limited_pop, plain_pop),
    "a limited queue: set aside, at put": (set_aside, plain_put),
    "a limited queue: release and hand over, at completion": (handing_over, plain_completion),
    "a history line": (history_line, no_change),
    "an event without a subscriber": (
        lambda bench: tracked_completion(bench, 1),
        lambda bench: tracked_completion(bench, 0),
    ),
}
"""The call with the feature, and the same without."""


def measure(engine: Engine, rounds: int, say: Say) -> dict[str, float]:
    """The median difference, µs a job."""
    found: dict[str, list[float]] = defaultdict(list)
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        wire.call("FUNCTION", "LOAD", library().text)
        bench = Bench(wire, "features")
        for number in range(rounds + 1):
            say(f"{engine}, round {number} of {rounds}")
            for name, (used, unused) in PAIRS.items():
                difference = used(bench) - unused(bench)
                if number:
                    found[name].append(difference)
    return {name: statistics.median(values) for name, values in found.items()}


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            continue
        for name, cost in measure(engine, 2 if quick else 11, say).items():
            expected = f"expected: {EXPECTED[name]}" if name in EXPECTED else ""
            rows.append(shown(f"{engine}: {name}", cost, "µs a job", expected))
    return rows
