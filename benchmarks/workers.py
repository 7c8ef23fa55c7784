"""What do the other pools reach, and what does a second process add? The real `holdfast worker`, beside SETs one by one
that were measured right before and after."""

import statistics
import time

from benchmarks.pace import busy_share, pace, ratio, resident, setting
from benchmarks.report import Row, Say, at_least, at_most, shown
from benchmarks.worker import ARGUED, QUEUE, Run, is_done, perform, until, working
from holdfast.testing.store import ScratchStore
from holdfast.worker.settings import POOLS

FLOORS = {
    "thread": ("bench.nothing", 10_000, ("--concurrency", "10")),
    "gevent": ("bench.nothing", 15_000, ("--concurrency", "10")),
    "fork": ("bench.nothing", 300, ()),
}
"""Of each pool: the job, how many a second are asked for, and the flags."""


LINES = {
    "asyncio": ("bench.anothing", 30_000, 1.25),
    "thread": ("bench.nothing", 15_000, 0.0),
    "process": ("bench.nothing", 5_000, 0.0),
}
"""Pools of which the price of log lines is measured: the job, how many, and the limit (0: none is set)."""


def run(quick: bool, say: Say) -> list[Row]:
    with ScratchStore() as store:
        rows = [row for pool in FLOORS if pool in POOLS for row in speed_of(store, pool, quick, say)]
        rows += [row for pool in LINES if pool in POOLS for row in price_of_lines(store, pool, quick, say)]
        rows += two_against_one(store, quick, say)
        return rows + [naps(store, pool, say) for pool in ("asyncio", "thread", "gevent") if pool in POOLS]


def speed_of(store: ScratchStore, pool: str, quick: bool, say: Say) -> list[Row]:
    """How many jobs that do nothing a process of a pool performs."""
    klass, floor, flags = FLOORS[pool]
    jobs, rounds, seconds = (floor // 2, 1, 0.2) if quick else (floor * 4, 5, 0.7)
    set_one = setting(store.url)
    runs: list[Run] = []
    reference: list[float] = []
    sizes: list[float] = []
    for number in range(rounds):
        say(f"{pool} pool, run {number + 1} of {rounds}")
        before = pace(set_one, seconds).rate
        runs.append(
            perform(
                store,
                klass,
                ARGUED,
                jobs,
                "--pool",
                pool,
                *flags,
                look=lambda pid: sizes.append(resident(pid)),
            )
        )
        reference.append((before + pace(set_one, seconds).rate) / 2)
    rate, cpu, store_cpu = (statistics.median(column) for column in zip(*runs, strict=True))
    share = ratio([one.rate for one in runs], reference)
    what = f"{pool}, {' '.join(flags).removeprefix('--') or 'one child'}, no-op function"
    beside = f"{share:.2f} × SET; best run {max(one.rate for one in runs):,.0f}; CPU {cpu:.0f}, store {store_cpu:.0f} µs"
    rows = [at_least(f"{what}: speed", rate, floor, "jobs/s", beside)]
    if pool == "fork":
        rows.append(at_most("fork: resident memory of the parent", max(sizes), 100, "MB"))
    return rows


def price_of_lines(store: ScratchStore, pool: str, quick: bool, say: Say) -> list[Row]:
    """CPU of a worker that logs a line for each job, against one with --quiet: ratios of interleaved pairs."""
    klass, jobs, limit = LINES[pool]
    rows: list[Row] = []
    for form in ("text", "json"):
        ratios: list[float] = []
        for number in range(2 if quick else 12):
            say(f"lines of jobs as {form}, {pool}, pair {number + 1}")
            costs = {
                quiet: perform(
                    store, klass, ARGUED, jobs, "--pool", pool, "--log-format", form, quiet=quiet
                ).cpu
                for quiet in ((True, False) if number % 2 else (False, True))
            }
            ratios.append(costs[False] / costs[True])
        what, found = f"{pool}: CPU with a {form} line a job / with --quiet", statistics.median(ratios)
        beside = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} pairs"
        rows.append(at_most(what, found, limit, "×", beside) if limit else shown(what, found, "×", beside))
    return rows


def two_against_one(store: ScratchStore, quick: bool, say: Say) -> list[Row]:
    """What a second process adds; where both cores are busy there is nothing to add."""
    jobs, rounds = (20_000, 1) if quick else (120_000, 5)
    flags = ("--pool", "asyncio", "--concurrency", "100")
    gains: list[float] = []
    shares: list[float] = []
    for number in range(rounds):
        say(f"one asyncio worker and two, run {number + 1} of {rounds}")
        one = perform(store, "bench.anothing", ARGUED, jobs, *flags)
        with busy_share() as busy:
            two = perform(store, "bench.anothing", ARGUED, jobs, *flags, "--workers", "2")
        gains.append(two.rate / one.rate)
        shares.append(busy())
    gain, share = statistics.median(gains), statistics.median(shares)
    met = gain >= 1.3 or share > 0.9
    what = "two asyncio workers against one"
    return [Row(what, f"{gain:.2f} ×", "≥ 1.3 ×, or cores > 90 % busy", met, f"cores {share:.0%} busy")]


def naps(store: ScratchStore, pool: str, say: Say) -> Row:
    """Fifty jobs that sleep a second each, at fifty seats."""
    say(f"sleepers, {pool}")
    klass = "bench.anap" if pool == "asyncio" else "bench.nap"
    with working(store, "--pool", pool, "--workers", "1", "--concurrency", "50") as client:
        seconds = []
        # The first round meets the code.
        for length, count in ((0.01, 50), (1.0, 50)):
            begun = time.monotonic()
            client.queues[QUEUE].put_many([(klass, {"args": [length]})] * count)
            until(lambda: is_done(client), "the sleepers are done", 0.002)
            seconds.append(time.monotonic() - begun)
    return at_most(f"50 sleepers of 1 s at concurrency 50 ({pool})", seconds[-1], 1.2, "s")
