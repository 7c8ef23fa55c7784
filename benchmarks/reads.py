"""Does any read grow with the number of jobs, and what does `explain` cost, at a million jobs?"""

import statistics
import time
from collections.abc import Sequence

from benchmarks.report import Row, Say, at_most
from benchmarks.roots import Root, fresh_root, jids
from benchmarks.storms import PACE_US, pace_of
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
HOUR_MS = 3_600_000
PAGE = 25
OWN = 10
"""What every size has as many of: queues, groups, workers, throttles of one job."""

Read = tuple[str, str, tuple[str | int, ...]]


def fill(root: Root, jobs: int) -> None:
    """`jobs` jobs: nine in ten wait, the others are scheduled, running, failed, complete, dependent, throttled."""
    part = jobs // 50
    root("config_set", "jobs-history-count", "1000000000")
    _ended(root, part)
    root.put("q", jids(part, "r"), 0, "throttle", "t")
    root("throttle_set", "", 0, "t", part, 0)
    root.pop("q", part, HOUR_MS)
    root.put("q", jids(part, "h"), 0, "throttle", "t")
    root.put("q", jids(part, "s"), HOUR_MS)
    root.put("q", jids(part // 4, "d"), 0, "depends", jids(1, "r")[0], "tag", "red")
    _of_each(root)
    root.put("q", jids(jobs - 5 * part - part // 4))


def _ended(root: Root, part: int) -> None:
    root.put("q", jids(part, "f"))
    held = root.pop("q", part)
    for first in range(0, part, 128):
        words = [w for jid, token in held[first : first + 128] for w in (jid, token, "")]
        root("fail", "w", "group", "because", *words)
    root.put("q", jids(part, "c"))
    held = root.pop("q", part)
    for first in range(0, part, 500):
        words = [w for jid, token in held[first : first + 500] for w in (jid, token, "", 0, "")]
        root("complete", "w", *words)


def _of_each(root: Root) -> None:
    """What does not grow with the jobs."""
    for number in range(OWN):
        root("worker_seen", f"w{number}", "queues", '["q"]')
        root("throttle_set", "", 0, f"t{number}", 1000, 0)
        root.put(f"q{number}", jids(OWN, f"q{number}"))
    throttles = [word for number in range(OWN) for word in ("throttle", f"t{number}")]
    root.put("q0", jids(1000, "p"))
    root.put("q", ["wide"], 0, "depends", jids(1, "p")[0], *throttles)
    for first in (0, 500):
        root("depend", "", 0, "add", "wide", *jids(1000, "p")[first : first + 500])


def behind(root: Root, kind: str, jid: str) -> tuple[str, str]:
    """A cursor: the score of a job in the set of that letter, and its jid."""
    score = root.wire.call("ZSCORE", f"{root.root}{kind}:q", jid)
    return score.decode(), jid


def reads(root: Root, jobs: int) -> Sequence[Read]:
    """What people and pages ask: name, verb, words."""
    part = jobs // 50
    waiting = jobs - 5 * part - part // 4
    tail, middle = f"j{waiting - 1:031d}", f"j{waiting // 2:031d}"
    failed = f"f{part // 2:031d}"
    return (
        ("counts of all queues", "counts", ()),
        ("a waiting job", "job_get", (tail,)),
        ("a running job", "job_get", jids(2, "r")[1:]),
        ("a job with a tag", "job_get", jids(1, "d")),
        ("a job with a thousand parents", "job_get", ("wide",)),
        ("a job for which many wait, 25 of them", "dependents", (jids(1, "r")[0], "", PAGE)),
        ("peek, first page", "peek", ("q", 0, PAGE)),
        ("peek, 10,000 on", "peek", ("q", min(10_000, jobs // 2), PAGE)),
        ("peek, nine tenths on", "peek", ("q", waiting * 9 // 10, PAGE)),
        ("completed, first page", "jobs_complete", (0, PAGE)),
        ("completed, the middle", "jobs_complete", (part // 2, PAGE)),
        ("a failure group, first page", "failed", ("group", 0, PAGE)),
        ("a failure group, the middle", "failed", ("group", part // 2, PAGE)),
        ("jobs of a tag, first page", "tagged", ("red", 0, PAGE)),
        ("jobs of a tag, the end", "tagged", ("red", part // 4 - PAGE, PAGE)),
        ("tags", "tags", (1, 0, PAGE)),
        ("failure groups", "failure_groups", (0, 100)),
        ("statistics of the day", "stats", ("q", 0)),
        ("minutes", "minutes", ("q", 0)),
        ("workers", "workers", ("", "", 64)),
        ("jobs of a worker", "worker_jobs", ("w", "", 100)),
        ("throttles", "throttles", (0, 100)),
        ("a throttle", "throttle_get", ("t",)),
        ("list: waiting, first page", "list", ("waiting", "q", "", "", PAGE)),
        (
            "list: scheduled, of equal times, the middle",
            "list",
            ("scheduled", "q", *behind(root, "t", jids(part, "s")[part // 2]), PAGE),
        ),
        (
            "list: waiting, behind one in the middle",
            "list",
            ("waiting", "q", *behind(root, "w", middle), PAGE),
        ),
        ("list: completed, the newest", "list", ("completed", "", "", "", PAGE)),
        ("list: running, first page", "list", ("running", "q", "", "", PAGE)),
        ("list: pending of a throttle", "list", ("pending", "t", "", "", PAGE)),
        ("explain: waiting, the head", "explain", jids(1)),
        ("explain: waiting, the tail", "explain", (tail,)),
        ("explain: depends", "explain", jids(1, "d")),
        ("explain: a thousand parents, ten throttles", "explain", ("wide",)),
        ("explain: running", "explain", jids(1, "r")),
        ("explain: failed", "explain", (failed,)),
        ("explain: throttled", "explain", (f"h{part // 2:031d}",)),
        ("explain: scheduled", "explain", jids(1, "s")),
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


def costs(engine: Engine, jobs: int) -> list[tuple[str, str, float]]:
    """Name, verb and µs of each read at the page's pace."""
    with fresh_root(engine) as root:
        fill(root, jobs)
        settle(root)
        at_pace = PACE_US / pace_of(root)
        return [(read[0], read[1], cost(root, read) * at_pace) for read in reads(root, jobs)]


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
        for (name, verb, after), (_, _, before) in zip(large, small, strict=True):
            what = f"{engine}: {name}, at {many:,} jobs"
            if verb == "explain":
                rows.append(at_most(what, after, EXPLAIN_US, "µs", f"{before:.0f} µs at {FEW:,}"))
            grown = after / before if after > before + SLACK_US else 1.0
            beside = f"{after:.0f} µs, {before:.0f} µs"
            rows.append(at_most(f"{what}, growth from {FEW:,}", grown, GROWTH, "×", beside))
    return rows
