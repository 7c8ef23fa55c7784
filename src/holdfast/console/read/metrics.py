"""The figures of a namespace for monitoring: what each queue holds and has done, failures, throttles, workers.

They come from the store, so one scraper is enough for all workers. Labels are bounded: of very many queues, groups or
throttles the largest ones have series of their own, and the others are counted together as `(other)`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from holdfast.client.plans import all_counts, all_failure_groups
from holdfast.commands.failures import FailureGroup
from holdfast.commands.queues import GetStats
from holdfast.commands.views import Minutes, Tallies
from holdfast.commands.workers import WorkerFacts
from holdfast.console.health.attention import is_silent
from holdfast.console.health.store_health import StoreMemory, store_memory
from holdfast.console.read.overview import number_of
from holdfast.console.read.queries import Throttle, all_workers, throttles
from holdfast.models import Counts, Stats
from holdfast.wire.plans import Plan, Planner
from holdfast.wire.shards import Shard

MOST_QUEUES: Final = 200
MOST_GROUPS: Final = 50
MOST_THROTTLES: Final = 100
OTHER: Final = "(other)"
QUANTILES: Final = (50, 95, 99)
STATES: Final = ("waiting", "running", "stalled", "throttled", "scheduled", "depends", "recurring", "failed")
_NOW: Final = 2**53 - 1

Kind = Literal["gauge", "counter"]
Labels = tuple[str, ...]


class Metric(msgspec.Struct):
    """One metric: its name, what it means, the names of its labels, and its samples by their values."""

    name: str
    meaning: str
    kind: Kind
    labels: tuple[str, ...]
    samples: dict[Labels, float] = msgspec.field(default_factory=dict[Labels, float])

    def add(self, labels: Labels, value: float) -> None:
        """Add a value to a sample."""
        self.samples[labels] = self.samples.get(labels, 0) + value


class Figures(msgspec.Struct, frozen=True):
    """What a scrape reads: all counts, and of the largest queues their statistics of today and exact counts."""

    now_ms: int
    counts: Sequence[Counts]
    stats: Mapping[str, Stats]
    tallies: Mapping[str, Tallies]
    groups: Sequence[FailureGroup]
    throttles: Sequence[Throttle]
    workers: Sequence[WorkerFacts]
    store: StoreMemory


def figures(ask: Planner, shard: Shard, now_ms: int, most_queues: int = MOST_QUEUES) -> Plan[Figures]:
    """Read the figures: two calls for each of the largest queues, one for each throttle, a few for the rest."""
    counts = yield from all_counts(ask)
    stats: dict[str, Stats] = {}
    tallies: dict[str, Tallies] = {}
    for name in largest(counts, most_queues):
        stats[name] = yield from ask(GetStats(name))
        lines = yield from ask(Minutes(name, _NOW))
        tallies[name] = lines[-1]
    groups = yield from all_failure_groups(ask)
    page = yield from throttles(ask, "", MOST_THROTTLES)
    workers = yield from all_workers(ask)
    store = yield from store_memory(shard)
    return Figures(now_ms, counts, stats, tallies, groups, page.rows[:MOST_THROTTLES], workers, store)


def largest(counts: Sequence[Counts], most: int) -> list[str]:
    """Return the names of the queues with the most jobs, at most `most`; in alphabetical order where all have room."""
    order = sorted(
        counts, key=lambda one: (-(one.waiting + one.running + one.failed + one.scheduled), one.name)
    )
    return sorted(one.name for one in order[:most])


def metrics(found: Figures) -> list[Metric]:
    """Return the metrics of some figures."""
    return [
        *_of_queues(found),
        *_of_statistics(found),
        *_of_tallies(found),
        _of_groups(found.groups),
        *_of_throttles(found.throttles),
        *_of_workers(found.workers, found.now_ms),
        *_of_store(found.store),
    ]


def _of_queues(found: Figures) -> Iterator[Metric]:
    jobs = Metric("holdfast_queue_jobs", "Jobs of a queue by state.", "gauge", ("queue", "state"))
    oldest = Metric(
        "holdfast_queue_oldest_waiting_seconds", "Age of the next waiting job.", "gauge", ("queue",)
    )
    paused = Metric("holdfast_queue_paused", "1 if the queue is paused.", "gauge", ("queue",))
    limit = Metric(
        "holdfast_queue_limit", "Jobs that may run at the same time; 0: no limit.", "gauge", ("queue",)
    )
    for one in found.counts:
        name = one.name if one.name in found.stats else OTHER
        for state in STATES:
            jobs.add((name, state), getattr(one, state))
        age = max(found.now_ms - one.oldest_ms, 0) / 1000 if one.oldest_ms else 0.0
        oldest.samples[(name,)] = max(oldest.samples.get((name,), 0.0), age)
        if name != OTHER:
            paused.add((name,), int(one.paused))
            limit.add((name,), one.limit)
    yield from (jobs, oldest, paused, limit)


def _of_statistics(found: Figures) -> Iterator[Metric]:
    wait = Metric(
        "holdfast_queue_wait_seconds",
        "Time from put to pop, of the jobs popped today (UTC).",
        "gauge",
        ("queue", "quantile"),
    )
    run = Metric(
        "holdfast_queue_run_seconds", "Time from pop to completion, of the jobs completed today (UTC).", "gauge",
        ("queue", "quantile"),
    )  # fmt: skip
    for name, stats in found.stats.items():
        for metric, sample in ((wait, stats.wait), (run, stats.run)):
            if sample.count:
                for percent in QUANTILES:
                    metric.add((name, f"{percent / 100:g}"), sample.percentile(percent))
    yield from (wait, run)


_COUNTED: Final = {
    "put": "Jobs put into a queue.",
    "popped": "Jobs taken by a worker.",
    "completed": "Runs that succeeded.",
    "failed": "Jobs that failed.",
    "retried": "Runs that ended in an error and were retried.",
    "lost": "Leases lost.",
    "timed_out": "Leases ended by an operator.",
    "cancelled": "Jobs cancelled.",
}


def _of_tallies(found: Figures) -> Iterator[Metric]:
    for what, meaning in _COUNTED.items():
        metric = Metric(f"holdfast_queue_{what}", meaning, "counter", ("queue",))
        for name, tallies in found.tallies.items():
            metric.add((name,), getattr(tallies, what))
        yield metric


def _of_groups(groups: Sequence[FailureGroup]) -> Metric:
    metric = Metric("holdfast_failed_jobs", "Failed jobs by failure group.", "gauge", ("group",))
    for at, group in enumerate(sorted(groups, key=lambda one: (-one.count, one.name))):
        metric.add((group.name if at < MOST_GROUPS else OTHER,), group.count)
    return metric


def _of_throttles(found: Sequence[Throttle]) -> Iterator[Metric]:
    used = Metric("holdfast_throttle_used", "Used slots of a throttle.", "gauge", ("throttle",))
    maximum = Metric("holdfast_throttle_maximum", "Slots of a throttle.", "gauge", ("throttle",))
    pending = Metric("holdfast_throttle_pending", "Jobs waiting for a slot.", "gauge", ("throttle",))
    for one in found:
        used.add((one.id,), one.facts.used)
        maximum.add((one.id,), one.facts.maximum)
        pending.add((one.id,), one.facts.pending)
    yield from (used, maximum, pending)


def _of_store(found: StoreMemory) -> Iterator[Metric]:
    """Return how full the store is; metrics without a sample where that is not known."""
    for name, meaning, value in (
        ("holdfast_store_memory_bytes", "Memory used by the store.", found.used),
        ("holdfast_store_memory_limit_bytes", "maxmemory of the store; 0: no limit.", found.limit),
        (
            "holdfast_store_full",
            "1 if the store refuses puts because its memory is full.",
            int(found.is_full),
        ),
    ):
        yield Metric(name, meaning, "gauge", (), {(): value} if found.is_known else {})


def _of_workers(workers: Sequence[WorkerFacts], now_ms: int) -> Iterator[Metric]:
    count = Metric("holdfast_workers", "Workers by state.", "gauge", ("state",))
    slots = Metric("holdfast_slots", "Slots of living workers.", "gauge", ("state",))
    for state in ("alive", "quiet", "silent"):
        count.add((state,), 0)
    for state in ("busy", "free"):
        slots.add((state,), 0)
    for worker in workers:
        silent = is_silent(worker, now_ms)
        count.add(("silent" if silent else "quiet" if worker.quiet else "alive",), 1)
        if not silent:
            busy, all_slots = number_of(worker, "busy"), number_of(worker, "slots")
            slots.add(("busy",), busy)
            slots.add(("free",), max(all_slots - busy, 0))
    yield from (count, slots)
