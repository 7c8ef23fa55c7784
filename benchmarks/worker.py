"""How many jobs does one worker process perform, and at what CPU? The real `holdfast worker`, jobs that do nothing."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.pace import children_of, cpu_of, pace, ratio, setting
from benchmarks.report import Row, Say, at_least, at_most, shown
from benchmarks.wirecpu import Wire
from holdfast import Client
from holdfast.testing.store import Durability, ScratchStore

REPO = Path(__file__).resolve().parents[1]
TEXT = "x" * 74
QUEUE = "bench"
ARGUED = {"args": [TEXT], "kwargs": {}}  # 100 bytes of JSON


Look = Callable[[int], object]


class Run(NamedTuple):
    """A worker between its first jobs and its last: jobs a second, µs of CPU a job (its own, and the store's)."""

    rate: float
    cpu: float
    store_cpu: float


def start_worker(url: str, *words: str, quiet: bool = True) -> subprocess.Popen[bytes]:
    """Start `holdfast worker` as people do; `quiet`: without a line for each job."""
    command = [
        str(Path(sys.executable).with_name("holdfast")),
        "worker",
        "-q",
        QUEUE,
        "--import",
        "benchmarks.jobs",
        *(["--quiet"] if quiet else []),
    ]
    command += ["--url", url, "--namespace", "bench", *words]
    return subprocess.Popen(command, cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def fill(url: str, klass: str, data: object, jobs: int) -> None:
    """Put so many jobs of a kind."""
    with Client(url, namespace="bench") as client:
        client.queues[QUEUE].put_many([(klass, data)] * jobs)


def is_done(client: Client) -> bool:
    """Whether nothing is left to do."""
    counts = client.queues[QUEUE].counts
    return not any(counts[name] for name in ("waiting", "running", "stalled", "scheduled"))


def until(condition: Callable[[], object], what: str, pause: float = 0.01) -> None:
    """Return when something has become true. Raises RuntimeError when it does not within a minute."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"not within a minute: {what}")
        time.sleep(pause)


@contextmanager
def working(store: ScratchStore, *words: str) -> Iterator[Client]:
    """A worker that has done its first job, and a client beside it."""
    worker = start_worker(store.url, *words)
    try:
        with Client(store.url, namespace="bench") as client:
            first = client.queues[QUEUE].put("bench.nothing", ARGUED)
            until(lambda: client.jobs[first].state == "complete", "the worker works")
            yield client
    finally:
        worker.terminate()
        worker.wait(20)
        store.flush()


class Waiting:
    """Looks at how many jobs wait, by one cheap command."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def count(self) -> int:
        waiting: int = self._wire.call("ZCARD", f"hf:{{bench}}:w:{QUEUE}")
        return waiting

    def until(self, limit: int, worker: subprocess.Popen[bytes]) -> None:
        """Return when no more than `limit` jobs wait. Raises RuntimeError if the worker ends or stands still."""
        last, moved = self.count(), time.monotonic()
        while last > limit:
            time.sleep(0.01)
            count = self.count()
            if count < last:
                last, moved = count, time.monotonic()
            if worker.poll() is not None or time.monotonic() - moved > 30:
                raise RuntimeError(f"the worker ended or stands still with {last} jobs left")


def perform(
    store: ScratchStore,
    klass: str,
    data: object,
    jobs: int,
    *words: str,
    look: Look | None = None,
    quiet: bool = True,
) -> Run:
    """Let a worker, of one process unless `words` say more, empty a queue of `jobs`.

    The first and the last tenth are not measured. `look` is called with the worker's parent in the middle.
    """
    fill(store.url, klass, data, jobs)
    wire = Wire(store.url)
    waiting = Waiting(wire)
    worker = start_worker(store.url, "--workers", "1", *words, quiet=quiet)
    try:
        waiting.until(int(jobs * 0.9), worker)
        children = children_of(worker.pid)
        before = (waiting.count(), time.perf_counter(), cpu_of(children), wire.cpu())
        if look is not None:
            look(worker.pid)
        waiting.until(int(jobs * 0.1), worker)
        after = (waiting.count(), time.perf_counter(), cpu_of(children), wire.cpu())
        waiting.until(0, worker)
    finally:
        worker.terminate()
        worker.wait(20)
        store.flush()
    done = before[0] - after[0]
    return Run(
        done / (after[1] - before[1]), (after[2] - before[2]) * 1e6 / done, (after[3] - before[3]) / done
    )


def performing(quick: bool, say: Say, durability: Durability, prefix: str = "") -> list[Row]:
    """The rows of one level of durability."""
    with ScratchStore(durability=durability) as store:
        rows = on_a_loop(store, quick, say, prefix)
        return rows + in_children(store, quick, say, prefix)


def on_a_loop(store: ScratchStore, quick: bool, say: Say, prefix: str) -> list[Row]:
    jobs, rounds = (40_000, 1) if quick else (200_000, 3)
    runs = []
    for number in range(rounds):
        say(f"{prefix}asyncio pool, run {number + 1} of {rounds}")
        runs.append(
            perform(store, "bench.anothing", ARGUED, jobs, "--pool", "asyncio", "--concurrency", "100")
        )
    cpu, rate, store_cpu = (
        statistics.median(column)
        for column in ([r.cpu for r in runs], [r.rate for r in runs], [r.store_cpu for r in runs])
    )
    best = f"best run {max(r.rate for r in runs):,.0f}"
    what = f"{prefix}asyncio, 100 seats, no-op async function"
    return [
        at_most(f"{what}: worker CPU", cpu, 20, "µs a job", f"store {store_cpu:.1f} µs a job"),
        # A disk has a speed of its own: nothing is asked of it.
        shown(f"{what}: speed", rate, "jobs/s", best)
        if store.durability == "fsync"
        else at_least(f"{what}: speed", rate, 40_000, "jobs/s", best),
    ]


def in_children(store: ScratchStore, quick: bool, say: Say, prefix: str) -> list[Row]:
    jobs, rounds, seconds = (5_000, 1, 0.2) if quick else (20_000, 7, 0.7)
    if store.durability == "fsync":
        jobs, rounds = jobs // 8, min(rounds, 5)
    kinds = {
        "function job": ("bench.nothing", ARGUED, 0.45),
        "class job that settles itself": ("benchmarks.jobs.Settling", {"text": TEXT}, 0.25),
    }
    set_one, rows = setting(store.url), []
    for kind, (klass, data, limit) in kinds.items():
        runs, reference = [], []
        for number in range(rounds):
            say(f"{prefix}process pool, {kind}, run {number + 1} of {rounds}")
            before = pace(set_one, seconds).rate
            runs.append(perform(store, klass, data, jobs, "--pool", "process"))
            reference.append((before + pace(set_one, seconds).rate) / 2)
        share = ratio([run.rate for run in runs], reference)
        rate, cpu, store_cpu = (statistics.median(column) for column in zip(*runs, strict=True))
        beside = f"{rate:,.0f}/s, SET {statistics.median(reference):,.0f}/s; CPU {cpu:.0f}, store {store_cpu:.0f} µs"
        rows.append(at_least(f"{prefix}process, one child, no-op {kind}", share, limit, "× SET", beside))
    return rows


def run(quick: bool, say: Say) -> list[Row]:
    return performing(quick, say, "memory")
