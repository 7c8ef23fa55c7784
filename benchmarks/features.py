"""What does a feature cost the jobs that use it? Store CPU of a call with it less that of the same call without,
measured in turns. The figures of the design page stand beside, and the same times the pace of this machine: how long
a plain lifecycle takes, one by one, against the 34.5 µs of the day the page's figures were compared with."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import NamedTuple

from benchmarks import feature_calls as calls
from benchmarks.feature_calls import Bench
from benchmarks.report import Row, Say, number, shown
from benchmarks.wirecpu import Wire
from holdfast.core.library import library
from holdfast.testing.store import Engine, ScratchStore, find_engine

Measure = Callable[[Bench], float]
BOTH, SINGLE = (1, 100), (1,)
PACE = 34.5  # µs
bare_put = calls.put_with()


class Price(NamedTuple):
    """A call with a feature, and the one it is compared with (None: with nothing). `asked` is µs, Valkey and Redis."""

    name: str
    used: Measure
    unused: Measure | None
    asked: tuple[float, float] | None = None
    batches: tuple[int, ...] = BOTH


ONE_TAG, THREE_TAGS = ("tag", "a"), ("tag", "a", "tag", "b", "tag", "c")
SLOT, BACKOFF, KEPT = ("throttle", "printer"), ("backoff", "exponential:1000:60000:10"), ("keep", "60000")
PRICES = (
    Price("leaving the usual path: put_x without options, against put", bare_put, calls.plain_put),
    Price("leaving it: completion of a tagged job, against a plain one's", calls.completion_with(*ONE_TAG), calls.plain_completion),
    Price("leaving it: pop of a tagged job, against a plain one's", calls.pop_with(*ONE_TAG), calls.plain_pop),
    Price("a unique key, against put", calls.unique_put, calls.plain_put, None, (1, 10, 100)),
    Price("one tag, against put_x without options", calls.put_with(*ONE_TAG), bare_put, (2.1, 2.6)),
    Price("three tags, against put_x without options", calls.put_with(*THREE_TAGS), bare_put, (3.6, 4.5)),
    Price("waits for one open job, against put_x without options", calls.put_waiting, bare_put, (3.1, 2.7)),
    Price("completion that releases one, against a plain one", calls.releasing, calls.plain_completion, (4.0, 4.7)),
    Price("limited queue, below its limit: put, against a plain one", calls.limited_put, calls.plain_put),
    Price("limited queue: pop takes a slot, against a plain one", calls.limited_pop, calls.plain_pop, (1.3, 1.2)),
    Price("limited queue: put when it is full, against a plain one", calls.set_aside, calls.plain_put, (1.6, 1.4)),
    Price("limited queue: completion, nobody pending, against a plain one", calls.limited_completion, calls.plain_completion),
    Price("limited queue: completion hands over, against one with nobody pending", calls.handing_over, calls.limited_completion, (1.8, 1.8)),
    Price("named throttle: put, against put_x without options", calls.put_with(*SLOT), bare_put),
    Price("named throttle: pop takes a slot, against a tagged job's", calls.pop_with(*SLOT), calls.pop_with(*ONE_TAG), (1.3, 1.2)),
    Price("named throttle: put when it is full, against put_x without options", calls.named_set_aside, bare_put, (1.6, 1.4)),
    Price("named throttle: completion, nobody pending, against a tagged job's", calls.completion_with(*SLOT), calls.completion_with(*ONE_TAG)),
    Price("one history line, completion of a told tracked job, against a tracked one's", calls.told_tracked_completion, calls.tracked_completion, (1.5, 1.5)),
    Price("an event without a subscriber, told tracked job against a told one", calls.told_tracked_completion, calls.told_completion, (0.4, 0.4)),
    Price("log, against a call that changes nothing", calls.logged, calls.no_change, None, SINGLE),
    Price("tag add, against a call that changes nothing", calls.tagging, calls.no_change, None, SINGLE),
    Price("report, against a call that changes nothing", calls.reporting, calls.no_change, None, SINGLE),
    Price("a result is kept, against a plain completion", calls.with_result, calls.plain_completion),
    Price("length of keeping wished at put, against put_x without options", calls.put_with(*KEPT), bare_put),
    Price("retry by the job's own backoff, against one with a delay", calls.retried(-1, *BACKOFF), calls.retried(1000)),
    Price("recurring job spawned by the pop that takes it, against a plain pop", calls.spawning, calls.plain_pop),
    Price("calendar that is due: the pop that puts its job and takes it, against put with a delay and pop", calls.spawning_of_plans, calls.delayed),
    Price("calendar that missed many moments: the same", calls.spawning_of_one_plan, calls.delayed),
    Price("a chain of ten: a lifecycle, against a plain one", calls.chained_lifecycle, calls.lifecycle),
    Price("a group of 99 and what follows: a lifecycle, against a plain one", calls.grouped_lifecycle, calls.lifecycle),
    Price("a group of any number of jobs: a lifecycle, against a plain one", calls.counted_lifecycle, calls.lifecycle),
    Price("unfail, each job", calls.unfailing, None),
    Price("watched root: a lifecycle, against one unwatched", calls.watched_lifecycle, calls.lifecycle),
)  # fmt: skip


class Found:
    """What each measure took, round by round; and the commands it ran, a job."""

    def __init__(self) -> None:
        self.spent: dict[tuple[Measure, int], list[float]] = defaultdict(list)
        self.inner: dict[tuple[Measure, int], Counter[str]] = {}

    def price(self, price: Price, batch: int) -> float:
        """The median difference, µs a job."""
        used = self.spent[price.used, batch]
        if price.unused is None:
            return statistics.median(used)
        unused = self.spent[price.unused, batch]
        return statistics.median(a - b for a, b in zip(used, unused, strict=True))

    def commands(self, price: Price, batch: int) -> str:
        """Inner commands a job more than without."""
        more = Counter(self.inner[price.used, batch])
        if price.unused is not None:
            more.subtract(self.inner[price.unused, batch])
        found = [(name, n / calls.JOBS) for name, n in sorted(more.items()) if abs(n) >= calls.JOBS / 20]
        return " ".join(f"{name.upper()} {n:+.1f}" for name, n in found)

    def pace(self) -> float:
        return statistics.median(self.spent[calls.lifecycle, 1]) / PACE


def measure(engine: Engine, rounds: int, say: Say) -> Found:
    """Every measure once a round, so that those compared lie close together. The first rounds fill what is kept of
    completed jobs, so that each pays for deleting its own; the second counts commands."""
    found = Found()
    with ScratchStore(engine=engine) as store:
        wire = Wire(store.url)
        wire.call("FUNCTION", "LOAD", library().text)
        wanted = dict.fromkeys(
            (m, batch) for p in PRICES for batch in p.batches for m in (p.used, p.unused) if m is not None
        )
        benches = {key: Bench(wire, f"features-{n}", key[1]) for n, key in enumerate(wanted)}
        for round_ in range(-1, rounds + 1):
            say(f"{engine}, round {round_} of {rounds}")
            for step, batch in wanted:
                bench = benches[step, batch]
                bench.inner = None if round_ else Counter()
                spent = step(bench)
                if bench.inner is not None:
                    found.inner[step, batch] = bench.inner
                elif round_ > 0:
                    found.spent[step, batch].append(spent)
    return found


def row(engine: Engine, found: Found, price: Price, batch: int) -> Row:
    cost = found.price(price, batch)
    what, commands = f"{engine}, batch {batch}: {price.name}", found.commands(price, batch)
    if price.asked is None:
        return shown(what, cost, "µs a job", commands)
    asked = price.asked[engine == "redis"]
    now = asked * max(1.0, found.pace())
    limit = f"+{number(asked)}, at this pace {number(now)} µs"
    return Row(what, f"{number(cost)} µs a job", limit, cost <= 1.25 * now, commands)


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            continue
        found = measure(engine, 2 if quick else 11, say)
        rows.append(
            shown(
                f"{engine}: a plain lifecycle",
                found.pace() * PACE,
                "µs",
                f"{found.pace():.2f} times {PACE} µs",
            )
        )
        rows += [row(engine, found, price, batch) for price in PRICES for batch in price.batches]
    return rows
