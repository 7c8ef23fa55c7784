"""How long is the longest single call when 20,000 jobs are due, expired, dependent, pending or to be dropped at once,
or when a call carries all that one may? Of two runs the smaller, at the pace of the design page."""

import statistics
from typing import NamedTuple

from benchmarks.report import Row, Say, at_most
from benchmarks.roots import Root, fresh_root
from benchmarks.storms_at_once import STORMS as AT_ONCE
from benchmarks.storms_full_calls import STORMS as FULL_CALLS
from benchmarks.storms_full_calls import Storm
from benchmarks.subjects import Native
from holdfast.testing.store import Engine, find_engine

LIMIT_MS = 5.0
STORM, FEWER = 20_000, 2_000
RUNS = 2
PACE_US = 34.5
"""A plain lifecycle, one job a call, when the figures of the design page were held against this machine."""


class Longest(NamedTuple):
    """One run of a storm, at the page's pace: longest call and mean in ms, how many calls, the pace it ran at."""

    most: float
    mean: float
    calls: int
    pace: float


def pace_of(root: Root) -> float:
    """µs of store CPU that a plain lifecycle takes just now: put, pop and complete, one job a call."""
    native = Native(root.wire, "pace")
    return min(sum(native.lifecycle(root.wire, 1).values()) for _ in range(2))


def once(engine: Engine, storm: Storm, size: int) -> Longest:
    spent = []
    with fresh_root(engine) as root:
        pace = pace_of(root)
        for verb, words in storm.calls(root, size):
            cpu, _ = root.timed(verb, *words)
            spent.append(cpu / 1000 * PACE_US / pace)
    return Longest(max(spent), statistics.fmean(spent), len(spent), pace)


def measured(engine: Engine, storm: Storm, size: int) -> Longest:
    """The better of the runs: another process may have pushed the store aside in the middle of a call."""
    return min(once(engine, storm, size) for _ in range(RUNS))


def judged(engine: Engine, storm: Storm, size: int) -> Row:
    found = measured(engine, storm, size)
    beside = f"mean {found.mean:.2f} ms of {found.calls} calls, pace {found.pace:.1f} µs"
    what = f"{engine}: {storm.name.format(f'{size:,}')}, longest call"

    return at_most(what, found.most, LIMIT_MS, "ms", beside)


def run(quick: bool, say: Say) -> list[Row]:
    rows = []
    engines: tuple[Engine, ...] = ("valkey",) if quick else ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            continue
        for storm in (*AT_ONCE, *FULL_CALLS):
            say(f"{engine}: {storm.name}")
            rows.append(judged(engine, storm, FEWER if quick else STORM))
    return rows
