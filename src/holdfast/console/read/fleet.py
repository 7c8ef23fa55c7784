"""Workers as operators look at them: all of them with what they run, and the queues that one worker takes jobs from, in its order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from holdfast.client.descriptors import AnyClient, PlanMethod
from holdfast.client.patterns import QueuePriorityPattern
from holdfast.client.plans import counts_of
from holdfast.client.queue_names import Fallbacks, divide_by_rules, is_plain, resolve_queue_names
from holdfast.client.serving import takes, whole
from holdfast.codecs import decode
from holdfast.commands.admin import Info, PatternFacts, Patterns
from holdfast.commands.queues import QueueNames
from holdfast.commands.workers import WorkerFacts, WorkerJobs
from holdfast.console.health.attention import is_silent, silent_ms
from holdfast.console.read.queries import Page, all_workers, checked_limit, identifiers_of, queues_of
from holdfast.errors import CodecError
from holdfast.models import Counts
from holdfast.settings import check_whole
from holdfast.wire.plans import Plan, Planner

MOST_ASKED: Final = 100
"""The largest number of queues of a worker whose counts are read."""
_PAGES: Final = 20
"""The largest number of pages of leases that are counted: 10,000 leases."""

Grouping = Literal["", "host", "version"]


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it reports itself, and how many jobs it runs.

    `queues` are names and patterns. `is_silent`: it has sent no heartbeat for longer than it should; from `silent_ms` on it is.
    `stuck`: seconds for which it has not responded; 0: it responds.
    """

    name: str
    host: str
    pid: int
    pool: str
    version: str
    queues: tuple[str, ...]
    slots: int
    busy: int
    running: int = 0
    stalled: int = 0
    started_ms: int
    seen_ms: int
    silent_ms: int
    quiet: bool
    is_silent: bool
    stuck: int


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """A page of workers, and what all of them are together.

    `versions` and `hosts` count the workers that are not silent. `matching` counts the workers that the page is one of.
    `is_counted` is False where there are more leases than were counted.
    """

    workers: Page[WorkerRow]
    count: int
    matching: int
    silent: int
    quiet: int
    slots: int
    busy: int
    running: int
    stalled: int
    versions: Mapping[str, int]
    hosts: Mapping[str, int]
    is_counted: bool


class QueueStep(msgspec.Struct, frozen=True):
    """Queues that a worker asks one after the other: the rule that put them here ((): none), and whether they take turns.

    `counts` are those of the first queues.
    """

    rule: tuple[str, ...]
    is_fair: bool
    queues: tuple[str, ...]
    counts: tuple[Counts, ...] = ()


def row_of(worker: WorkerFacts, now_ms: int) -> WorkerRow:
    """Return what a worker reports. It may report anything: what cannot be read is left out."""
    facts = worker.facts
    return WorkerRow(
        name=worker.name,
        host=facts.get("host", ""),
        pid=whole(facts.get("pid")),
        pool=facts.get("pool", ""),
        version=facts.get("version", ""),
        queues=tuple(queues_of(worker)),
        slots=whole(facts.get("slots")),
        busy=whole(facts.get("busy")),
        started_ms=whole(facts.get("started")),
        seen_ms=worker.seen_ms,
        silent_ms=silent_ms(worker),
        quiet=worker.quiet,
        is_silent=is_silent(worker, now_ms),
        stuck=whole(facts.get("stuck")),
    )


def fleet(ask: Planner, queue: str, name: str, by: Grouping, after: str, limit: int) -> Plan[Fleet]:
    """Return a page of the workers that take jobs of a queue ("": any) and have a text in their name or host.

    Those that are alive come first, by name; then silent ones, the most recently seen first; groups stay together.
    """
    size = checked_limit(limit)
    now = (yield from ask(Info())).now_ms
    everybody = [row_of(one, now) for one in (yield from all_workers(ask))]
    identifiers = identifiers_of((yield from ask(Patterns()))) if queue else {}
    found = [
        one
        for one in everybody
        if (not name or name in one.name or name in one.host)
        and (not queue or serves(one, queue, identifiers))
    ]
    found.sort(key=lambda one: (_group(one, by), one.is_silent, -one.seen_ms * one.is_silent, one.name))
    running, stalled, is_counted = yield from _lease_counts(ask)
    first = check_whole("cursor", int(after) if after.isdecimal() else after or 0, 0, 1 << 40)
    rows = [
        msgspec.structs.replace(one, running=running[one.name], stalled=stalled[one.name])
        for one in found[first : first + size]
    ]
    more = str(first + size) if len(found) > first + size else ""
    alive = [one for one in everybody if not one.is_silent]
    return Fleet(
        workers=Page(tuple(rows), more, len(found)),
        count=len(everybody),
        matching=len(found),
        silent=len(everybody) - len(alive),
        quiet=sum(one.quiet for one in alive),
        slots=sum(one.slots for one in alive),
        busy=sum(one.busy for one in alive),
        running=running.total(),
        stalled=stalled.total(),
        versions=dict(sorted(Counter(one.version for one in alive if one.version).items())),
        hosts=dict(sorted(Counter(one.host for one in alive if one.host).items())),
        is_counted=is_counted,
    )


def _group(one: WorkerRow, by: Grouping) -> str:
    return one.host if by == "host" else one.version if by == "version" else ""


def _lease_counts(ask: Planner) -> Plan[tuple[Counter[str], Counter[str], bool]]:
    """Return how many jobs each worker runs, how many of its leases have ended, and whether all leases were counted."""
    running, stalled, cursor = Counter[str](), Counter[str](), ""
    for _ in range(_PAGES):
        page = yield from ask(WorkerJobs("", cursor))
        for one in page.jobs:
            (stalled if one.stalled else running)[one.worker] += 1
        cursor = page.cursor
        if not cursor:
            break
    return running, stalled, not cursor


# The queues of a worker.


def rules_of(facts: PatternFacts) -> list[QueuePriorityPattern]:
    """Return the rules of the order of queues, without those that cannot be read."""
    found: list[QueuePriorityPattern] = []
    for raw in facts.priorities:
        try:
            rule = decode(raw)
            patterns = msgspec.convert(rule["pattern"], list[str])
        except (CodecError, TypeError, KeyError, msgspec.MsgspecError):
            continue
        found.append(QueuePriorityPattern(patterns, rule.get("fairly") is True))
    return found


def serves(worker: WorkerRow, queue: str, identifiers: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a worker takes jobs of a queue, by the names and patterns that it reports."""
    return takes(worker.queues, queue, identifiers, worker.host)


def steps_of(
    patterns: Sequence[str], known: Sequence[str], facts: PatternFacts, host: str = ""
) -> list[QueueStep]:
    """Return which of the known queues a worker of these patterns asks, in its order. Plain names keep their own."""
    if all(map(is_plain, patterns)):
        return [QueueStep((), False, tuple(dict.fromkeys(patterns)))] if patterns else []
    names = resolve_queue_names(Fallbacks(identifiers_of(facts), host), known, patterns)
    return [
        QueueStep(tuple(rule.patterns), rule.should_distribute_fairly, tuple(queues))
        for rule, queues in divide_by_rules(names, rules_of(facts))
        if queues
    ]


def queue_steps(ask: Planner, patterns: Sequence[str], host: str = "") -> Plan[tuple[QueueStep, ...]]:
    """Return the queues that a worker of these patterns on a machine asks, in its order, with their counts."""
    known = sorted((yield from ask(QueueNames())))
    left = MOST_ASKED
    found: list[QueueStep] = []
    for step in steps_of(patterns, known, (yield from ask(Patterns())), host):
        counts = yield from counts_of(ask, step.queues[:left])
        left -= len(counts)
        found.append(msgspec.structs.replace(step, counts=tuple(counts)))
    return tuple(found)


class FleetVerbs:
    """The queries of operators on all workers together."""

    _client: AnyClient

    @PlanMethod
    def fleet(
        self,
        ask: Planner,
        *,
        queue: str = "",
        name: str = "",
        by: Grouping = "",
        after: str = "",
        limit: int = 64,
    ) -> Plan[Fleet]:
        """A page of workers with what they run, and what all of them are together."""
        return fleet(ask, queue, name, by, after, limit)

    @PlanMethod
    def queue_steps(self, ask: Planner, *patterns: str, host: str = "") -> Plan[tuple[QueueStep, ...]]:
        """The queues that a worker of these names and patterns asks, in its order, with their counts."""
        return queue_steps(ask, patterns, host)
