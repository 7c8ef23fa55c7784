"""How long is the longest single call when 20,000 jobs are due, expired, dependent, pending or to be dropped at once?"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks.report import Row, Say, at_most
from benchmarks.roots import Root, fresh_root, jids
from holdfast.testing.store import Engine, find_engine

LIMIT_MS = 5.0
STORM = 20_000
MOST_CALLS = 3_000

Call = tuple[str, tuple[str | int | bytes, ...]]


class Storm(NamedTuple):
    """What is prepared, and the calls that meet it, until they end by themselves."""

    name: str
    calls: Callable[[Root, int], Iterator[Call]]


def until_quiet(root: Root, verb: str, *words: str | int, state: int) -> Iterator[Call]:
    """The same call again until the queue has nothing left in that column of its counts."""
    for _ in range(MOST_CALLS):
        yield verb, words
        if not int(root("counts", "q")[0][state]):
            return


WAITING, RUNNING, STALLED, THROTTLED, SCHEDULED, DEPENDS = range(1, 7)
POP_ONE = ("w", "", 0, 1, 0, "q", 0)


def due(root: Root, size: int) -> Iterator[Call]:
    root.put("q", jids(size), 1000)
    root.advance(2000)
    for _ in range(size // 100 + 5):
        yield "pop", POP_ONE


def expired(root: Root, size: int) -> Iterator[Call]:
    root.put("q", jids(size))
    root.pop("q", size, 1000)
    root.advance(2000)
    yield from (("pop", POP_ONE) for _ in range(size // 100 + 1))
    root.advance(20_000)
    yield from (("pop", ("w", "", 0, 100, 0, "q", 0)) for _ in range(size // 100 + 1))


def dependents(root: Root, size: int) -> Iterator[Call]:
    root.put("p", ["parent"])
    root.put("q", jids(size), 0, "depends", "parent")
    [(jid, token)] = root.pop("p", 1)
    yield "complete", ("w", jid, token, "", 0, "")
    yield from until_quiet(root, "pop", "w", "", 0, 1, 0, "q", 0, state=DEPENDS)


def cancelled(root: Root, size: int) -> Iterator[Call]:
    names = jids(size)
    root.put("q", names)
    for first in range(0, size, 512):
        yield "cancel", ("", 0, *names[first : first + 512])


def dropped(root: Root, size: int) -> Iterator[Call]:
    root("config_set", "jobs-history-count", "1000000")
    root.put("q", jids(size))
    while held := root.pop("q", 500):
        root("complete", "w", *(word for jid, token in held for word in (jid, token, "", 0, "")))
    yield "config_set", ("jobs-history-count", "0")
    for _ in range(size // 600 + 5):
        yield "sweep", ("", 0)


def in_batches(root: Root, size: int) -> Iterator[Call]:
    words = [word for jid in jids(512) for word in (jid, "app.send", '{"user":7}')]
    yield "put", ("", 0, "new", "q", 0, 5, 0, *words)
    yield "pop", ("w", "line", 1, 512, 0, "q", 0)
    yield "complete", ("w", *(word for jid in jids(512) for word in (jid, root.now, "", 60_000, "null")))


STORMS = (
    Storm("512 jobs put, popped, completed", in_batches),
    Storm("{} jobs due", due),
    Storm("{} leases expired: noticed, then handed out", expired),
    Storm("{} jobs that depend on one", dependents),
    Storm("{} jobs cancelled, 512 a call", cancelled),
    Storm("{} completed jobs above a lowered limit", dropped),
)


def longest(engine: Engine, storm: Storm, size: int) -> tuple[float, float, int]:
    """Longest call and mean, ms, and how many calls."""
    spent = []
    with fresh_root(engine) as root:
        for verb, words in storm.calls(root, size):
            cpu, _ = root.timed(verb, *words)
            spent.append(cpu / 1000)
    return max(spent), sum(spent) / len(spent), len(spent)


def run(quick: bool, say: Say) -> list[Row]:
    rows = []
    size = 2_000 if quick else STORM
    engines: tuple[Engine, ...] = ("valkey",) if quick else ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            continue
        for storm in STORMS:
            say(f"{engine}: {storm.name}")
            most, mean, count = longest(engine, storm, size)
            beside = f"mean {mean:.2f} ms of {count} calls"
            rows.append(
                at_most(f"{engine}: {storm.name.format(size)}, longest call", most, LIMIT_MS, "ms", beside)
            )
    return rows
