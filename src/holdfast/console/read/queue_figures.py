"""Queues as lists and pages show them: beside their counts what happened lately, who serves them, and their jobs by state."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.commands import Command
from holdfast.commands.admin import ConfigGet, Info
from holdfast.commands.job_rows import JobRow
from holdfast.commands.jobs import JobGet
from holdfast.commands.queues import GetStats, ThrottleFacts, ThrottleGet
from holdfast.commands.recurring import RecurGet, RecurringFacts
from holdfast.commands.views import Entry, ListSet, Minutes
from holdfast.console.filters import parse
from holdfast.console.read.charts import Steps as ChartSteps
from holdfast.console.read.charts import added, period, steps, waiting_at
from holdfast.console.read.namespace_queries import SettingsPlace
from holdfast.console.read.queries import (
    Page,
    Series,
    Servers,
    all_workers,
    checked_limit,
    drains_in,
    growth_of,
    series_of,
    servers_of,
)
from holdfast.console.search.filter_values import Exact
from holdfast.console.search.search import search
from holdfast.errors import HoldfastError
from holdfast.models import Counts, Sample, Stats
from holdfast.settings import check_name
from holdfast.wire.exchange import exchange_all
from holdfast.wire.plans import Plan, Planner
from holdfast.wire.shards import Shard

_MINUTE_MS: Final = 60_000
_TREND: Final = 30
"""Minutes of a sparkline."""
MOST: Final = 40
"""Queues whose figures are added for the charts of a namespace."""
_CHARTED: Final = ("put", "popped", "completed", "retried", "failed", "lost")


class QueueFigures(msgspec.Struct, frozen=True):
    """A queue in a list: its counts, and what happened there lately.

    `trend`: completed jobs in each of the last 30 minutes. `growth`: jobs a minute by which more wait, over the last two to
    three minutes; negative while the queue drains, None where there is no forecast. `wait_p95` and `wait_median` are in seconds, of
    today, None without a sample. `workers` take jobs of it.
    """

    counts: Counts
    trend: tuple[float, ...]
    growth: float | None
    wait_median: float | None
    wait_p95: float | None
    workers: int

    @property
    def drains_in(self) -> float | None:
        """Seconds until nothing waits at this rate; None if it does not drain."""
        return drains_in(self.growth, self.counts)

    @property
    def rate(self) -> float:
        """Completed jobs a minute over the last ten minutes."""
        return sum(self.trend[-10:]) / 10


def asked(shard: Shard, commands: Sequence[Command[Any]]) -> Plan[list[Any]]:
    """Run commands in one pipeline and return their results. Raises the first error of them."""
    if not commands:
        return []
    results = yield from exchange_all(shard, commands)
    for result in results:
        if isinstance(result, HoldfastError):
            raise result
    return results


def figures_of(ask: Planner, shard: Shard, counts: Sequence[Counts], now_ms: int) -> Plan[list[QueueFigures]]:
    """Return the figures of some queues: two commands for each, in one pipeline, and the list of workers."""
    since = now_ms - (_TREND + 2) * _MINUTE_MS
    commands: list[Command[Any]] = [Minutes(one.name, since) for one in counts]
    commands += [GetStats(one.name) for one in counts]
    found = yield from asked(shard, commands)
    everybody = yield from all_workers(ask)
    lines, stats = found[: len(counts)], found[len(counts) :]
    servers = yield from servers_of(ask, everybody, [one.name for one in counts], now_ms)
    return [
        _figures(one, series_of(some), day.wait, servers[one.name], now_ms)
        for one, some, day in zip(counts, lines, stats, strict=True)
    ]


def _figures(
    counts: Counts, series: Sequence[Series], wait: Sample, servers: Servers, now_ms: int
) -> QueueFigures:
    trend = steps([series], ("completed",), now_ms, _MINUTE_MS, _TREND).of("completed")
    median, p95 = (wait.percentile(percent) if wait.count else None for percent in (50, 95))
    return QueueFigures(counts, trend, growth_of(series, counts, servers), median, p95, len(servers.taking))


# Charts.


def throughput(shard: Shard, names: Sequence[str], range: str, now_ms: int) -> Plan[ChartSteps]:
    """Return what happened in some queues together, step by step. At most 40 queues are read."""
    shown = period(range, now_ms)
    since = shown.end_ms - (shown.columns + 1) * shown.step_ms
    lines = yield from asked(shard, [Minutes(name, since) for name in names[:MOST]])
    return steps([series_of(one) for one in lines], _CHARTED, shown.end_ms, shown.step_ms, shown.columns)


def backlog(shard: Shard, name: str, over: ChartSteps) -> Plan[tuple[int | None, ...]]:
    """Return how many jobs of a queue waited at the end of each of these steps, None where it was not noted."""
    [lines] = yield from asked(
        shard, [Minutes(name)]
    )  # all: the last line before a period holds until something changes
    return waiting_at(lines, over.times)


def waits_of(shard: Shard, names: Sequence[str]) -> Plan[Sample]:
    """Return how long the jobs of some queues waited today, as one sample."""
    found: list[Stats] = yield from asked(shard, [GetStats(name) for name in names[:MOST]])
    return added(one.wait for one in found)


# The jobs of a queue.

JOB_TABS: Final = ("running", "waiting", "throttled", "scheduled", "stalled", "depends", "failed")


class ThrottleUse(msgspec.Struct, frozen=True):
    """How full a throttle is, and who holds a slot of it: the first one, since when."""

    facts: ThrottleFacts
    holder: str = ""
    since_ms: int = 0


class QueueJobs(msgspec.Struct, frozen=True):
    """Some jobs of a queue in one state; waiting ones in the order in which they are popped.

    `filter` matches all of them. Of depending jobs `needs` has the jids that each waits for, of throttled ones the names of its
    throttles that have a limit, and `throttles` how full these are. `grace_ms` is the time that a worker whose lease ended has.
    """

    filter: str
    jobs: Page[JobRow]
    grace_ms: int
    needs: Mapping[str, tuple[str, ...]] = {}
    throttles: Mapping[str, ThrottleUse] = {}


def filter_of(queue: str, states: str) -> str:
    """Return the filter that matches the jobs of a queue in some states."""
    return f"queue:{Exact(queue)} state:{states}"


def jobs_of(
    ask: Planner, shard: Shard, queue: str, state: str, after: str, limit: int, now_ms: int
) -> Plan[QueueJobs]:
    """Return a page of the jobs of a queue in one of JOB_TABS, without their data."""
    text = filter_of(queue, state)
    found = yield from search(ask, parse(text), now_ms, checked_limit(limit), after, "te")
    info = yield from ask(Info())
    page = Page(found.jobs, found.cursor, found.candidates)
    grace, needs = round(info.grace), dict[str, tuple[str, ...]]()
    if state not in ("depends", "throttled") or not page.rows:
        return QueueJobs(text, page, grace)
    for facts in (yield from ask(JobGet([row.jid for row in page.rows]))):
        if facts is not None:
            needs[facts.jid] = facts.dependencies if state == "depends" else facts.throttles
    if state == "depends":
        return QueueJobs(text, page, grace, needs)
    uses = yield from _uses(shard, needs.values())
    limited = {jid: tuple(name for name in names if name in uses) for jid, names in needs.items()}
    return QueueJobs(text, page, grace, limited, uses)


def _uses(shard: Shard, lists: Iterable[Sequence[str]]) -> Plan[dict[str, ThrottleUse]]:
    names = list(dict.fromkeys(name for some in lists for name in some))[:MOST]
    commands: list[Command[Any]] = [ThrottleGet(name) for name in names]
    commands += [ListSet("holders", name, None, 1) for name in names]
    found = yield from asked(shard, commands)
    return {
        name: _use(facts, holders.entries)
        for name, facts, holders in zip(names, found[: len(names)], found[len(names) :], strict=True)
        if facts.maximum
    }


def _use(facts: ThrottleFacts, holders: Sequence[Entry]) -> ThrottleUse:
    if not holders:
        return ThrottleUse(facts)
    return ThrottleUse(facts, holders[0].member, round(float(holders[0].score)))


def recurring_of(ask: Planner, queue: str, after: str, limit: int) -> Plan[Page[RecurringFacts]]:
    """Return a page of the recurring jobs of a queue, the next due one first."""
    place = SettingsPlace.parse(after)
    page = yield from ask(ListSet("recurring", check_name("queue", queue), place.after, checked_limit(limit)))
    rows = (yield from ask(RecurGet(page.names))) if page.names else []
    found = tuple(one for one in rows if one is not None)
    return Page(found, str(SettingsPlace(queue, page.next)) if page.next else "")


def heartbeat_of(ask: Planner, queue: str) -> Plan[str]:
    """Return the length of the leases of a queue in seconds as it is set for this queue, "" if it is not."""
    key = f"{queue}-heartbeat"
    found = yield from ask(ConfigGet((key,)))
    return found.get(key) or ""
