"""What do many queues cost? One worker finds a thousand queues, or ten thousand, by a pattern, alone and beside a hundred thousand
empty names; and two idle fleets of fifty workers wait for jobs of their own queues."""

import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.pace import children_of
from benchmarks.redelivery import noted
from benchmarks.report import Row, Say, at_least, at_most, shown
from benchmarks.wirecpu import Wire
from benchmarks.worker import ARGUED, start_worker, until
from holdfast import Client
from holdfast.commands.jobs import Cancel, Put
from holdfast.testing.store import ScratchStore

POOL = ("--pool", "asyncio", "--concurrency", "100", "--workers", "1", "-q", "q*")
EMPTY = 100_000
FLEET = 25
"""Processes of each of the two idle fleets."""
TOGETHER = 500


def run(quick: bool, say: Say) -> list[Row]:
    rounds, empty = (1, 10_000) if quick else (5, EMPTY)
    with ScratchStore() as store:
        return [*rates(store, rounds, empty, say), *idle_fleets(store, 100 if quick else 400, say)]


def rates(store: ScratchStore, rounds: int, empty: int, say: Say) -> list[Row]:
    """Alone, and beside empty names, by turns with one queue."""
    with Client(store.url, namespace="bench") as client:
        client.config["jobs-history-count"] = 10_000_000  # completed jobs are counted
        found: dict[str, list[tuple[float, float]]] = {}
        for beside in (0, empty):
            if beside:
                say(f"{empty:,} empty names")
                put_and_cancel(client, empty)
            for number in range(rounds):
                for name, queues, jobs in (
                    ("one", 1, 10_000),
                    ("1000", 1000, 10_000),
                    ("10000", 10_000, 10_000),
                ):
                    say(f"{queues:,} queues beside {beside:,} names, run {number + 1} of {rounds}")
                    found.setdefault(f"{name}{beside}", []).append(drained(store, client, queues, jobs))
    rows = []
    for beside, what in ((0, ""), (empty, f", beside {empty:,} empty names")):
        one = found[f"one{beside}"]
        for name, share in (("1000", 0.5), ("10000", 0.0)):
            many = found[f"{name}{beside}"]
            speed = ratio(many, one, 0)
            text = f"{median(many, 0):,.0f}/s, one queue {median(one, 0):,.0f}/s"
            title = f"{name} queues{what}: speed"
            rows.append(
                at_least(title, speed, share, "× one queue", text)
                if share
                else shown(title, speed, "× one queue", text)
            )
            cost = f"{median(many, 1):.0f} µs, one queue {median(one, 1):.0f} µs"
            title, times = f"{name} queues{what}: store CPU a job", ratio(many, one, 1)
            asked = at_most(title, times, 2, "× one queue", cost)
            rows.append(asked if share else shown(title, times, "× one queue", cost))
    alone, beside_them = found["10000" + "0"], found[f"10000{empty}"]
    rows.append(at_most("10000 × 1: drained in", 10_000 / median(alone, 0), 20, "s"))
    rows.append(
        at_least(
            f"10000 × 1: speed beside {empty:,} empty names", ratio(beside_them, alone, 0), 0.9, "× alone"
        )
    )
    return rows


def median(runs: Sequence[tuple[float, float]], at: int) -> float:
    return statistics.median(one[at] for one in runs)


def ratio(runs: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]], at: int) -> float:
    return statistics.median(one[at] / other[at] for one, other in zip(runs, others, strict=True))


def put_and_cancel(client: Client, names: int) -> None:
    """Queues that were used once."""
    for first in range(0, names, TOGETHER):
        jids = [f"e{number}" for number in range(first, first + TOGETHER)]
        client.run_all([Put(f"empty-{jid}", "bench.anothing", b"{}", jid=jid) for jid in jids])
        client.run(Cancel(jids))


def drained(store: ScratchStore, client: Client, queues: int, jobs: int) -> tuple[float, float]:
    """Jobs a second of a worker that empties so many queues, and the store's µs of CPU a job."""
    wire = Wire(store.url)
    completed = int(wire.call("LLEN", "hf:{bench}:c"))
    each = [("bench.anothing", ARGUED)] * (jobs // queues)
    for queue in range(queues):
        client.queues[f"q{queue}"].put_many(each)
    worker = start_worker(store.url, *POOL)

    def left() -> int:
        return jobs + completed - int(wire.call("LLEN", "hf:{bench}:c"))

    try:
        until(lambda: left() < jobs * 0.95, "the worker works")
        before = left(), time.perf_counter(), wire.cpu()
        until(lambda: left() < jobs * 0.05, "most are done")
        after = left(), time.perf_counter(), wire.cpu()
        until(lambda: left() == 0, "all are done")
    finally:
        worker.terminate()
        worker.wait(20)
    done = before[0] - after[0]
    return done / (after[1] - before[1]), (after[2] - before[2]) / done


@contextmanager
def fleets(url: str) -> Iterator[None]:
    """Fifty workers of two patterns, which wait."""
    words = ("--pool", "process", "--workers", str(FLEET), "--interval", "60")
    workers = [start_worker(url, *words, "-q", pattern) for pattern in ("a*", "b*")]
    try:
        until(lambda: all(len(children_of(worker.pid)) == FLEET for worker in workers), "they are there")
        yield
    finally:
        stop(workers)


def stop(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.wait(30)


def idle_fleets(store: ScratchStore, jobs: int, say: Say) -> list[Row]:
    """How soon is a job begun, and how many workers are woken for it?"""
    say("two idle fleets")
    store.flush()
    with noted() as moments, Client(store.url, namespace="bench") as client, fleets(store.url):
        wire = Wire(store.url)
        until(lambda: waiting(wire) == 2 * FLEET, "all wait")
        before = calls(wire, "blpop")
        for number in range(jobs):
            client.queues[f"{'ab'[number % 2]}{number}"].put("bench.stamp", {"args": [time.time_ns()]})
            until(lambda at=number: len(moments()) == at + 1, "it was begun")
            until(lambda: waiting(wire) == 2 * FLEET, "all wait again")
        woken = (calls(wire, "blpop") - before) / jobs
        waits = sorted(1000 * moment for moment in moments())
    p50, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    return [
        shown("a job for one of two idle fleets of 25: begun after, p99", p99, "ms", f"p50 {p50:.2f} ms"),
        at_most("workers woken for it, of 50", woken, 3, "a job"),
    ]


def calls(wire: Wire, command: str) -> int:
    """How often a command was called."""
    text = wire.call("INFO", "commandstats").decode()
    [line] = [line for line in text.splitlines() if line.startswith(f"cmdstat_{command}:")]
    return int(line.split("calls=")[1].split(",")[0])


def waiting(wire: Wire) -> int:
    """How many connections wait at a bell."""
    lines = wire.call("INFO", "clients").decode().splitlines()
    return next(int(line.split(":")[1]) for line in lines if line.startswith("blocked_clients:"))
