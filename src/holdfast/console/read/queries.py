"""What operators look at: queues, jobs, failures, workers, throttles, recurring jobs, settings. Each is a plan of few calls.

Lists are pages: `next` of a page is the cursor of the following one, "" after the last. Times are milliseconds of the
store's clock, ages and lengths are seconds.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Generic, TypeVar

import msgspec

from holdfast.client.plans import all_counts, counts_of
from holdfast.client.serving import names_in, takes
from holdfast.commands.admin import Info, PatternFacts, Patterns
from holdfast.commands.failures import START
from holdfast.commands.jobs import JobGet
from holdfast.commands.queues import (
    CountQueues,
    GetStats,
    QueueGet,
    QueueNames,
    ThrottleFacts,
    ThrottleGet,
    ThrottleNames,
)
from holdfast.commands.views import ListSet, Minutes, Tallies
from holdfast.commands.workers import MAX_ROWS, HeldJob, WorkerFacts, WorkerJobs, Workers
from holdfast.console.filters import glob
from holdfast.console.health.attention import is_silent
from holdfast.console.unknown import unknown
from holdfast.errors import UsageError
from holdfast.models import Counts, Stats
from holdfast.settings import MAX_BATCH, OWN_THROTTLE, check_name, check_throttle, check_whole
from holdfast.wire.plans import Plan, Planner

T = TypeVar("T")
HOUR_MS: Final = 3_600_000


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some rows of a list, the cursor of the next ones ("": there are no more), and how many there are, -1 if unknown."""

    rows: tuple[T, ...]
    next: str = ""
    total: int = -1


def checked_limit(limit: object) -> int:
    """Return the size of a page, up to 512. Raises UsageError."""
    return check_whole("limit", limit, 1, MAX_BATCH)


# Queues.

SORTS: Final = (
    "name",
    "waiting",
    "running",
    "failed",
    "stalled",
    "scheduled",
    "throttled",
    "depends",
    "recurring",
    "oldest",
)


def queues(
    ask: Planner, pattern: str, sort: str, after: str, limit: int, reverse: bool = False
) -> Plan[Page[Counts]]:
    """Return a page of the queues whose name matches a glob, by name, or with the largest number first, or the other way round.

    A page by name reads the queues that it shows; any other order reads all of them.
    """
    size = checked_limit(limit)
    if sort not in SORTS:
        raise UsageError(f"sort: expected one of {', '.join(SORTS)}, got {sort!r:.80}")
    matches = glob(pattern)
    if sort == "name":
        names = sorted((name for name in (yield from ask(QueueNames())) if matches(name)), reverse=reverse)
        chosen = [name for name in names if not after or (name < after if reverse else name > after)]
        rows = yield from counts_of(ask, chosen[:size])
        return Page(tuple(rows), chosen[size - 1] if len(chosen) > size else "", len(names))
    found = [one for one in (yield from all_counts(ask)) if matches(one.name)]
    found.sort(key=lambda one: (_rank(one, sort) if reverse else -_rank(one, sort), one.name))
    first = check_whole("cursor", int(after or 0) if (after or "0").isdecimal() else after, 0, 1 << 40)
    more = str(first + size) if len(found) > first + size else ""
    return Page(tuple(found[first : first + size]), more, len(found))


def _rank(one: Counts, sort: str) -> float:
    if sort == "oldest":
        return -one.oldest_ms if one.oldest_ms else float("-inf")
    return float(getattr(one, sort))


class Series(msgspec.Struct, frozen=True, gc=False):
    """What happened in a queue in one period that ended at `when_ms`."""

    when_ms: int
    seconds: float
    put: int
    popped: int
    completed: int
    failed: int
    retried: int
    lost: int
    waiting: int = -1
    """How many jobs waited for a worker at its end, -1 if that is not known."""


def series_of(lines: Sequence[Tallies]) -> tuple[Series, ...]:
    """Return the differences of exact counts, one for each period."""
    found: list[Series] = []
    for before, now in pairwise(lines):
        step, seconds = now.since(before), (now.when_ms - before.when_ms) / 1000
        found.append(
            Series(
                now.when_ms,
                seconds,
                step.put,
                step.popped,
                step.completed,
                step.failed,
                step.retried,
                step.lost,
                now.waiting,
            )
        )
    return tuple(found)


class SilentWorker(msgspec.Struct, frozen=True, gc=False):
    """A worker that sends no heartbeats any more, and when it was seen last."""

    name: str
    seen_ms: int


_FORECAST_MS: Final = 120_000
_OLDEST_MS: Final = 240_000


def growth_of(series: Sequence[Series], counts: Counts, servers: "Servers") -> float | None:
    """Return by how many jobs a minute more wait for a worker than two to three minutes ago; negative while they get fewer.

    None where that is not known, or would be no forecast: the counts were not noted (no worker and no web interface was alive), the
    queue is paused, or no worker serves it. Where no worker was ever reported, one that took jobs in this time serves it.
    """
    if not series or counts.paused:
        return None
    now = series[-1]
    before = next((one for one in reversed(series) if one.when_ms <= now.when_ms - _FORECAST_MS), None)
    if before is None or before.waiting < 0 or now.waiting < 0:
        return None
    is_unreported = not servers.quiet and not servers.silent
    has_taken = is_unreported and any(one.popped for one in series if one.when_ms > before.when_ms)
    if not servers.taking and not has_taken:
        return None
    if now.when_ms - before.when_ms > _OLDEST_MS:
        return 0.0 if now.waiting == before.waiting else None
    return (now.waiting - before.waiting) * 60_000 / (now.when_ms - before.when_ms)


def drains_in(growth: float | None, counts: Counts) -> float | None:
    """Return the seconds until nothing waits at this rate; None if the queue does not drain, or that is not known."""
    return -counts.waiting * 60 / growth if counts.waiting and growth is not None and growth < 0 else None


class QueueDetail(msgspec.Struct, frozen=True):
    """One queue: its counts, the statistics of a day, what happened lately, its throttle, and who works for it.

    `workers` are those that take its jobs, without quiet and silent ones.
    """

    counts: Counts
    day_ms: int
    stats: Stats
    series: tuple[Series, ...]
    throttle: ThrottleFacts
    options: Mapping[str, int]
    workers: tuple[str, ...]
    quiet_workers: tuple[str, ...] = ()
    silent_workers: tuple[SilentWorker, ...] = ()

    @property
    def growth(self) -> float | None:
        """By how many jobs a minute more wait, as `growth_of` has it."""
        return growth_of(
            self.series, self.counts, Servers(self.workers, self.quiet_workers, self.silent_workers)
        )

    @property
    def drains_in(self) -> float | None:
        """Seconds until nothing waits at the rate of the last minutes; None if it does not drain, or that is not known."""
        return drains_in(self.growth, self.counts)


def queue(ask: Planner, name: str, day_ms: int, since_ms: int) -> Plan[QueueDetail]:
    """Return one queue. Raises HoldfastError if it is not known."""
    known = yield from ask(QueueNames())
    if check_name("queue", name) not in known:
        raise unknown("queue", name, known)
    [counts] = yield from ask(CountQueues((name,)))
    stats = yield from ask(GetStats(name, day_ms))
    lines = yield from ask(Minutes(name, since_ms))
    throttle = yield from ask(ThrottleGet(OWN_THROTTLE + name))
    options = yield from ask(QueueGet(name))
    now = (yield from ask(Info())).now_ms
    found = (yield from servers_of(ask, (yield from all_workers(ask)), (name,), now))[name]
    return QueueDetail(
        counts, day_ms, stats, series_of(lines), throttle, options, found.taking, found.quiet, found.silent
    )


class Servers(msgspec.Struct, frozen=True):
    """The workers of a queue: those that take its jobs, quiet ones, and silent ones, the last one first."""

    taking: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()
    silent: tuple[SilentWorker, ...] = ()


def servers_of(
    ask: Planner, everybody: Sequence[WorkerFacts], queues: Sequence[str], now_ms: int
) -> Plan[dict[str, Servers]]:
    """Return the workers of each of these queues, by the names and patterns that they report."""
    lists = {one.name: queues_of(one) for one in everybody}
    identifiers: Mapping[str, Sequence[str]] = {}
    if any(name.startswith(("@", "!@")) for names in lists.values() for name in names):
        identifiers = identifiers_of((yield from ask(Patterns())))
    found: dict[str, Servers] = {}
    for queue in queues:
        mine = [
            one
            for one in everybody
            if lists[one.name] and takes(lists[one.name], queue, identifiers, one.facts.get("host", ""))
        ]
        alive = [one for one in mine if not is_silent(one, now_ms)]
        found[queue] = Servers(
            tuple(one.name for one in alive if not one.quiet),
            tuple(one.name for one in alive if one.quiet),
            tuple(SilentWorker(one.name, one.seen_ms) for one in mine if is_silent(one, now_ms)),
        )
    return found


def identifiers_of(facts: PatternFacts) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each queue identifier; none for one that cannot be read."""
    return {name: names_in(raw) for name, raw in facts.identifiers.items()}


def queues_of(worker: WorkerFacts) -> list[str]:
    """Return the queues and patterns that a worker reports; none if its report cannot be read."""
    try:
        return msgspec.json.decode(worker.facts.get("queues", "[]").encode(), type=list[str])
    except msgspec.MsgspecError:
        return []


# Workers.


class WorkerDetail(msgspec.Struct, frozen=True):
    """A worker, the queues and patterns that it reports, and the jobs that it holds."""

    facts: WorkerFacts
    queues: tuple[str, ...]
    holds: tuple[HeldJob, ...]
    klasses: Mapping[str, str]


def workers(ask: Planner, after: str, limit: int) -> Plan[Page[WorkerFacts]]:
    """Return a page of workers, most recently seen first."""
    size = min(checked_limit(limit), MAX_ROWS)
    seen, _, name = after.partition(" ")
    rows = yield from ask(Workers((seen, name), size))
    more = f"{rows[-1].seen_ms} {rows[-1].name}" if len(rows) == size else ""
    return Page(tuple(rows), more)


def all_workers(ask: Planner) -> Plan[list[WorkerFacts]]:
    """Return every worker, most recently seen first."""
    found: dict[str, WorkerFacts] = {}
    after = ""
    while True:
        page = yield from workers(ask, after, MAX_ROWS)
        found.update({worker.name: worker for worker in page.rows})
        after = page.next
        if not after:
            return list(found.values())


def held(ask: Planner, name: str) -> Plan[list[HeldJob]]:
    """Return the jobs that a worker holds, those of all workers for ""; the one held longest first."""
    found: dict[str, HeldJob] = {}
    cursor, is_first = "", True
    while cursor or is_first:
        page = yield from ask(WorkerJobs(name, cursor))
        found.update({one.jid: one for one in page.jobs})
        cursor, is_first = page.cursor, False
    return sorted(found.values(), key=lambda one: one.since_ms)


def worker(ask: Planner, name: str) -> Plan[WorkerDetail]:
    """Return one worker. Raises HoldfastError if it is not known."""
    everybody = {one.name: one for one in (yield from all_workers(ask))}
    found = everybody.get(check_name("worker", name))
    if found is None:
        raise unknown("worker", name, everybody)
    holds = yield from held(ask, name)
    jids = [one.jid for one in holds[:MAX_BATCH]]
    jobs = (yield from ask(JobGet(jids[:100]))) if jids else []
    klasses = {facts.jid: facts.klass for facts in jobs if facts is not None}
    return WorkerDetail(found, tuple(queues_of(found)), tuple(holds), klasses)


# Throttles.


class Throttle(msgspec.Struct, frozen=True):
    """A throttle with its use: who holds a slot since when, and who waits for one, the first ones of each."""

    id: str
    facts: ThrottleFacts
    holders: tuple[tuple[str, float], ...] = ()
    waiters: tuple[tuple[str, float], ...] = ()

    @property
    def queue(self) -> str:
        """The queue whose own throttle this is, "" for a named one."""
        return self.id.removeprefix(OWN_THROTTLE) if self.id.startswith(OWN_THROTTLE) else ""


def throttles(ask: Planner, cursor: str, limit: int) -> Plan[Page[Throttle]]:
    """Return a page of throttles that have a limit, in no order."""
    following, names = yield from ask(ThrottleNames(cursor or START, checked_limit(limit)))
    facts: dict[str, ThrottleFacts] = {}
    for name in sorted(names):
        facts[name] = yield from ask(ThrottleGet(name))
    rows = tuple(Throttle(name, one) for name, one in facts.items())
    return Page(rows, "" if following == START else following)


def throttle(ask: Planner, id: str, limit: int) -> Plan[Throttle]:
    """Return one throttle with its first holders and waiters. Raises HoldfastError if nothing is known of it."""
    size = checked_limit(limit)
    facts = yield from ask(ThrottleGet(check_throttle(id)))
    if facts == ThrottleFacts(0, 0, 0):
        yield from _check_known(ask, id)
    holders = yield from ask(ListSet("holders", id, None, size))
    waiters = yield from ask(ListSet("pending", id, None, size))
    return Throttle(
        id,
        facts,
        tuple((one.member, float(one.score)) for one in holders.entries),
        tuple((one.member, float(one.score)) for one in waiters.entries),
    )


def _check_known(ask: Planner, id: str) -> Plan[None]:
    """Raise HoldfastError unless a throttle without limit and jobs is that of a known queue."""
    queues = yield from ask(QueueNames())
    if id.startswith(OWN_THROTTLE) and id.removeprefix(OWN_THROTTLE) in queues:
        return
    _, names = yield from ask(ThrottleNames(START, MAX_BATCH))
    raise unknown("throttle", id, [*names, *(OWN_THROTTLE + name for name in queues)])
