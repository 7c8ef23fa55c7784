"""How fast this process, and how much CPU others take: what several benchmarks measure with."""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import redis

BODY = b"x" * 100
_TICK = os.sysconf("SC_CLK_TCK")


class Pace(NamedTuple):
    """One slice of work: so many operations a second, each so many µs of this process's CPU."""

    rate: float
    cpu: float


def pace(step: Callable[[], int], seconds: float) -> Pace:
    """Repeat `step`, which answers how many operations it did, for about `seconds`."""
    done = 0
    begun, cpu = time.perf_counter(), time.process_time()
    end = begun + seconds
    while time.perf_counter() < end:
        done += step()
    return Pace(done / (time.perf_counter() - begun), (time.process_time() - cpu) * 1e6 / done)


def setting(url: str) -> Callable[[], int]:
    """The measure of round trips: SETs of 100 bytes by redis-py, one by one."""
    client = redis.Redis.from_url(url)

    def step() -> int:
        for _ in range(20):
            client.set("reference", BODY)
        return 20

    return step


def ratio(mine: Sequence[float], reference: Sequence[float]) -> float:
    """The median of ratios of slices that lay next to each other."""
    return statistics.median(a / b for a, b in zip(mine, reference, strict=True))


def cpu_of(pids: Iterable[int]) -> float:
    """CPU seconds that these processes have used so far, all their threads together."""
    return sum(_cpu_of(pid) for pid in pids)


def _cpu_of(pid: int) -> float:
    try:
        return (
            sum(
                int((task / "schedstat").read_text().split()[0])
                for task in Path(f"/proc/{pid}/task").iterdir()
            )
            / 1e9
        )
    except OSError:
        # Coarser, but every Linux has it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK


def children_of(pid: int) -> list[int]:
    """The processes that `pid` has forked and that live."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if int(parent) == pid:
                found.append(int(entry.name))
    return found


def resident(pid: int) -> float:
    """The memory that a process has in use, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextmanager
def busy_share() -> Iterator[Callable[[], float]]:
    """Which share of all cores was busy in the block, whoever used them; asked afterwards."""
    before = _busy_and_all()
    shares: list[float] = []
    yield lambda: shares[0]
    busy, everything = (now - then for now, then in zip(_busy_and_all(), before, strict=True))
    shares.append(busy / everything)


def _busy_and_all() -> tuple[int, int]:
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    # Idle, and waiting for a disk.
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
