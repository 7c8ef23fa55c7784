"""How soon is a job begun when the worker is idle? Real idle workers beside the same number of processes that wait in a
bare blocking pop, at the same store; a producer of its own process gives to both in turn, at random moments."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

from benchmarks.jobs import LOG
from benchmarks.report import Row, Say, at_most, shown
from benchmarks.wirecpu import Wire
from benchmarks.worker import REPO, start_worker
from holdfast.testing.store import ScratchStore

KLASS = {"process": "bench.stamp", "asyncio": "bench.astamp"}
PER_SECOND = 100  # arrivals; a hand-over takes a fraction of a millisecond, so nobody waits behind another


class Spread(NamedTuple):
    """Latencies in milliseconds."""

    p50: float
    p99: float

    def __str__(self) -> str:
        return f"p50 {self.p50:.2f}, p99 {self.p99:.2f} ms"


def spread_of(file: Path, skip: int) -> Spread:
    """What the log says, without the first `skip` hand-overs, in which each process met its code for the first time."""
    cuts = quantiles([int(line) / 1e6 for line in file.read_text().split()[skip:]], n=100)
    return Spread(cuts[49], cuts[98])


class Peers:
    """Forked processes that wait in a bare blocking pop; BRPOP, so that the store counts it apart from the bells."""

    KEY = "handed-over"

    def __init__(self, store: ScratchStore, count: int, log: Path) -> None:
        self.process = _start("wakeup_peers", store.url, str(count), str(log))

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(10)


def _start(module: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{module}", *words], cwd=REPO, start_new_session=True
    )


def calls(wire: Wire) -> dict[str, int]:
    """How often each command was called so far."""
    lines = wire.call("INFO", "commandstats").decode().splitlines()
    pairs = (line.removeprefix("cmdstat_").split(":calls=") for line in lines if line.startswith("cmdstat_"))
    return {name: int(rest.partition(",")[0]) for name, rest in pairs}


def blocked(wire: Wire) -> int:
    text = wire.call("INFO", "clients").decode()
    return int(next(line for line in text.splitlines() if line.startswith("blocked_clients")).split(":")[1])


def until_all_wait(wire: Wire, count: int) -> None:
    """Return when so many clients are blocked."""
    end = time.monotonic() + 60
    while blocked(wire) < count:
        if time.monotonic() > end:
            raise RuntimeError(f"only {blocked(wire)} of {count} wait")
        time.sleep(0.05)


def produced(store: ScratchStore, klass: str, arrivals: int, logs: tuple[Path, Path], so_far: int) -> None:
    """Let a producer give so many to each side, and return when all were picked up."""
    producer = _start("wakeup_producer", store.url, klass, str(arrivals), str(PER_SECOND))
    if producer.wait(600):
        raise RuntimeError("the producer failed")
    for log in logs:
        until_logged(log, so_far + arrivals)


def until_logged(file: Path, lines: int) -> None:
    end = time.monotonic() + 30
    while not file.exists() or file.read_text().count("\n") < lines:
        if time.monotonic() > end:
            raise RuntimeError(f"{file.name} has too few lines")
        time.sleep(0.05)


def picked_up(
    store: ScratchStore, pool: str, workers: int, arrivals: int, idle: float, say: Say
) -> list[Row]:
    """The rows of so many idle workers."""
    warming = 20 + 3 * workers
    where = f"{workers} idle worker{'s' if workers > 1 else ''} ({pool})"
    with tempfile.TemporaryDirectory() as directory:
        ours, theirs = Path(directory) / "ours", Path(directory) / "theirs"
        os.environ[LOG] = str(ours)
        peers = Peers(store, workers, theirs)
        worker = start_worker(store.url, "--pool", pool, "--workers", str(workers))
        wire = Wire(store.url)
        try:
            until_all_wait(wire, 2 * workers)
            produced(store, KLASS[pool], warming, (ours, theirs), 0)
            until_all_wait(wire, 2 * workers)
            say(f"{where}: {arrivals} arrivals")
            before = calls(wire)
            produced(store, KLASS[pool], arrivals, (ours, theirs), warming)
            until_all_wait(wire, 2 * workers)
            after = calls(wire)
            say(f"{where}: idle")
            time.sleep(idle)
            rest = calls(wire)
        finally:
            peers.stop()
            worker.terminate()
            worker.wait(20)
        mine, bare = spread_of(ours, warming), spread_of(theirs, warming)
    asked, waits = ((after.get(name, 0) - before.get(name, 0)) / arrivals for name in ("fcall", "blpop"))
    lazy = sum(rest.get(name, 0) - after.get(name, 0) for name in ("fcall", "blpop")) / idle / workers
    return [
        at_most(
            f"{where}: p99 against a bare hand-over", mine.p99 / bare.p99, 3, "×", f"{mine} against {bare}"
        ),
        shown(f"{where}: p50 against a bare hand-over", mine.p50 / bare.p50, "×"),
        # One call of each job is its put.
        shown(f"{where}: pops per job, completing ones among them", asked - 1, "", f"{waits:.2f} wakes"),
        at_most(f"{where}: calls while idle", lazy, 1, "a second each"),
    ]


def run(quick: bool, say: Say) -> list[Row]:
    arrivals, idle, crowd = (50, 2.0, 10) if quick else (1500, 12.0, 50)
    rows: list[Row] = []
    for pool, workers in (("process", 1), ("asyncio", 1), ("process", crowd)):
        with ScratchStore() as store:
            rows += picked_up(store, pool, workers, arrivals, idle, say)
    return rows
