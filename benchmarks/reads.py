"""Does any read grow with the number of jobs, and what does `explain` cost, at a million jobs?"""

import statistics
import time
from collections.abc import Sequence

from benchmarks.report import Row, Say, at_most
from benchmarks.roots import Root, fresh_root, jids
from holdfast.testing.store import Engine, find_engine

MILLION = 1_000_000
FEW = 10_000
ROUNDS = 41
EXPLAIN_US = 1_000.0
GROWTH = 2.0
SETTLED_AFTER = 60.0
IDLE_US = 2_000.0
SLACK_US = 15.0
"""What a read may cost more whatever it costs: the noise of one call."""

Read = tuple[str, str, tuple[str | int, ...]]


def fill(root: Root, jobs: int) -> None:
    """`jobs` jobs: nine in ten wait, the others are scheduled, running, failed, complete, dependent."""
    part = jobs // 50
    root("config_set", "jobs-history-count", "1000000000")
    root.put("q", jids(part, "f"))
    held = root.pop("q", part)
    for first in range(0, part, 500):
        root(
            "fail",
            "w",
            "group",
            "because",
            *(w for jid, token in held[first : first + 500] for w in (jid, token, "")),
        )
    root.put("q", jids(part, "c"))
    held = root.pop("q", part)
    for first in range(0, part, 500):
        words = [w for jid, token in held[first : first + 500] for w in (jid, token, "", 0, "")]
        root("complete", "w", *words)
    root.put("q", jids(part, "r"))
    root.pop("q", part, 3_600_000)
    root.put("q", jids(part, "s"), 3_600_000)
    root.put("q", jids(part // 10, "d"), 0, "depends", jids(1, "r")[0], "tag", "red")
    root.put("q", jids(jobs - 4 * part - part // 10))


def reads(jobs: int) -> Sequence[Read]:
    """What people and pages ask: name, verb, words."""
    tail = f"j{jobs * 9 // 10 - 1:031d}"
    return (
        ("counts of all queues", "counts", ()),
        ("a waiting job", "job_get", (tail,)),
        ("a running job", "job_get", jids(1, "r")),
        ("peek, first page", "peek", ("q", 0, 25)),
        ("peek, 10,000 on", "peek", ("q", min(10_000, jobs // 2), 25)),
        ("completed, first page", "jobs_complete", (0, 25)),
        ("a failure group, first page", "failed", ("group", 0, 25)),
        ("failure groups", "failures", ()),
        ("statistics of the day", "stats", ("q", 0)),
    )


def cost(root: Root, read: Read) -> float:
    """µs of store CPU, the median of many."""
    _, verb, words = read
    return statistics.median(root.timed(verb, *words)[0] for _ in range(ROUNDS))


def settle(root: Root) -> None:
    """Wait until the store has put its tables in order, which takes it seconds after so many puts."""
    end = time.monotonic() + SETTLED_AFTER
    while time.monotonic() < end:
        before = root.wire.cpu()
        time.sleep(0.5)
        if root.wire.cpu() - before < IDLE_US:
            return


def costs(engine: Engine, jobs: int) -> list[float]:
    with fresh_root(engine) as root:
        fill(root, jobs)
        settle(root)
        return [cost(root, read) for read in reads(jobs)]


def run(quick: bool, say: Say) -> list[Row]:
    rows = []
    many = 20_000 if quick else MILLION
    engines: tuple[Engine, ...] = ("valkey",) if quick else ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            continue
        say(f"{engine}: {FEW} jobs")
        small = costs(engine, FEW)
        say(f"{engine}: {many} jobs")
        large = costs(engine, many)
        for read, before, after in zip(reads(many), small, large, strict=True):
            what = f"{engine}: {read[0]}, at {many:,} jobs"
            if read[1] == "explain":
                rows.append(at_most(what, after, EXPLAIN_US, "µs", f"{before:.0f} µs at {FEW:,}"))
            grown = after / before if after > before + SLACK_US else 1.0
            rows.append(
                at_most(
                    f"{what}, growth from {FEW:,}", grown, GROWTH, "×", f"{after:.0f} µs, {before:.0f} µs"
                )
            )
    return rows
