"""The first look: how much there is of everything, and what needs attention, most urgent first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from holdfast.client.plans import all_counts, all_failure_groups
from holdfast.commands.failures import FailureGroup
from holdfast.commands.views import ListSet
from holdfast.commands.workers import WorkerFacts
from holdfast.console.health.attention import KINDS, ORDER, Attention, NamespaceFacts, is_silent
from holdfast.console.health.snooze import GROUP, Snooze, Snoozed, add, divided, snoozes
from holdfast.console.health.store_health import StoreMemory, store_health
from holdfast.console.health.triage import RULES
from holdfast.console.read.queries import all_workers, held
from holdfast.errors import UnknownName, UsageError
from holdfast.models import Counts
from holdfast.settings import check_milliseconds
from holdfast.text import counted, listed
from holdfast.wire.plans import Plan, Planner
from holdfast.wire.shards import Shard


class Overview(msgspec.Struct, frozen=True):
    """The counts of all queues together, what needs attention, the busiest queues, and the groups of the latest failures.

    Of many findings of one kind `attention` has one that stands for all, unless each was asked for; `finding_count` counts each.
    `snoozed` are findings that operators have snoozed; `attention` leaves them out. `workers` and `slots` are those of workers
    that are not silent, `silent` counts the others; `busy` slots run a job by the leases of this moment. `versions` counts the
    workers that are not silent by their version.
    """

    now_ms: int
    totals: dict[str, int]
    queue_count: int
    failed_groups: int
    failed_last_hour: int
    workers: int
    slots: int
    busy: int
    tracked: int
    attention: tuple[Attention, ...]
    queues: tuple[Counts, ...]
    failures: tuple[FailureGroup, ...]
    snoozed: tuple[Snoozed, ...] = ()
    versions: Mapping[str, int] = {}
    silent: int = 0
    store: StoreMemory = StoreMemory(False)
    finding_count: int = 0

    @property
    def sentence(self) -> str:
        """The most urgent finding in words, and how many others there are."""
        if not self.attention:
            return "Nothing needs attention." if self.queue_count else "There are no queues yet."
        first = self.attention[0]
        more = self.finding_count - first.count
        others = f" {counted(more, 'more finding')}." if more else ""
        return f"{first.sentence[0].upper()}{first.sentence[1:]}.{others}"


_TOTALED: Final = (
    "waiting",
    "running",
    "scheduled",
    "depends",
    "throttled",
    "stalled",
    "recurring",
    "failed",
)


def overview(ask: Planner, shard: Shard, now_ms: int, most: int = 12, each: bool = False) -> Plan[Overview]:
    """Return the overview, of at most `most` queues and groups; `each`: many findings of one kind are not gathered."""
    counts = yield from all_counts(ask)
    groups = yield from all_failure_groups(ask)
    workers = yield from all_workers(ask)
    tracked = yield from ask(ListSet("tracked", "", None, 512))
    lost = yield from _lost(ask, workers, now_ms)
    facts = NamespaceFacts(now_ms, shard.settings.flags, counts, workers, lost, groups)
    store, found = yield from _found(ask, shard, facts)
    shown, snoozed = divided(found, (yield from snoozes(ask)), now_ms)
    busiest = sorted(counts, key=lambda one: (-(one.running + one.waiting + one.failed), one.name))
    totals = {name: sum(getattr(one, name) for one in counts) for name in _TOTALED}
    alive = [worker for worker in workers if not is_silent(worker, now_ms)]
    slots = sum(number_of(worker, "slots") for worker in alive)
    return Overview(
        now_ms,
        totals,
        len(counts),
        len(groups),
        sum(group.trend[-1] for group in groups),
        len(alive),
        slots,
        min(totals["running"], slots),
        len(tracked.entries),
        tuple(shown if each else _gathered(shown)),
        tuple(busiest[:most]),
        tuple(groups[:most]),
        tuple(snoozed),
        versions_of(workers, now_ms),
        len(workers) - len(alive),
        store,
        len(shown),
    )


def versions_of(workers: Sequence[WorkerFacts], now_ms: int) -> dict[str, int]:
    """Count the workers that are not silent by the version that they report."""
    alive = [one.facts.get("version", "") for one in workers if not is_silent(one, now_ms)]
    return dict(sorted(Counter(version for version in alive if version).items()))


def snoozed(
    ask: Planner, shard: Shard, who: str, now_ms: int, about: str, subject: str, seconds: float
) -> Plan[Snooze]:
    """Snooze findings of a kind, or all about a noun, on one subject ("": any), for a number of seconds (0: until they grow).

    Raises UsageError, UnknownName if there is nothing of that kind; failure groups can be muted before they need attention.
    """
    if about not in KINDS and about not in {one.noun for one in KINDS.values()}:
        raise UsageError(
            f"about: expected one of {', '.join(KINDS)}, or the subject of a finding, got {about!r:.80}"
        )
    until = now_ms + check_milliseconds("seconds", seconds) if seconds else 0
    made = Snooze(about=about, subject=subject, who=who, since_ms=now_ms, until_ms=until)
    groups = (yield from all_failure_groups(ask)) if about == GROUP and subject else []
    jobs = next((one.count for one in groups if one.name == subject), 0)
    if not jobs:
        found = [one for one in (yield from _findings(ask, shard, now_ms)) if made.is_about(one)]
        if not found:
            raise UnknownName(f"nothing about {about} {subject:.200} needs attention")
        first = min(ORDER.index(one.severity) for one in found)
        made = msgspec.structs.replace(made, severity=ORDER[first])
        jobs = max(one.jobs for one in found) if subject else len(found)
    made = msgspec.structs.replace(made, jobs=jobs)
    yield from add(ask, made, now_ms)
    return made


def _findings(ask: Planner, shard: Shard, now_ms: int) -> Plan[list[Attention]]:
    """Return all that needs attention, the most urgent first, snoozed or not."""
    counts = yield from all_counts(ask)
    groups = yield from all_failure_groups(ask)
    workers = yield from all_workers(ask)
    lost = yield from _lost(ask, workers, now_ms)
    facts = NamespaceFacts(now_ms, "", counts, workers, lost, groups)
    return (yield from _found(ask, shard, facts))[1]


def _found(ask: Planner, shard: Shard, facts: NamespaceFacts) -> Plan[tuple[StoreMemory, list[Attention]]]:
    """Return how full the store is, and all that needs attention, the most urgent first."""
    store, found = yield from store_health(ask, shard, facts.queues)
    for rule in RULES.values():
        found += (yield from rule(ask, facts)).attention
    return store, _once(_ordered(found))


def _ordered(found: Sequence[Attention]) -> list[Attention]:
    """Return findings with the most urgent first; of those of one kind the one about most jobs is the first."""
    kinds = {kind: at for at, kind in reversed(list(enumerate(one.kind for one in found)))}
    return sorted(found, key=lambda one: (ORDER.index(one.severity), kinds[one.kind], -one.jobs))


_TOGETHER: Final = 3
"""Findings of one kind that are shown one by one; more of them become one line."""
_MOST_SILENT: Final = 20
"""Silent workers whose jobs are counted, the most recently seen ones."""


def _once(found: Sequence[Attention]) -> list[Attention]:
    """Return findings without those that the command of an earlier one helps too: these have the same cause."""
    first = {one.command: one for one in reversed(found)}
    return [one for one in found if not one.command or first[one.command] is one]


def _gathered(found: Sequence[Attention]) -> list[Attention]:
    """Return findings without long rows of the same kind: the first stands for all."""
    kinds = Counter(one.kind for one in found)
    shown: list[Attention] = []
    for one in found:
        if kinds[one.kind] <= _TOGETHER:
            shown.append(one)
        elif not any(other.kind == one.kind for other in shown):
            shown.append(_together(one, [other.subject for other in found if other.kind == one.kind]))
    return shown


def _together(first: Attention, names: Sequence[str]) -> Attention:
    return msgspec.structs.replace(first, text=listed(names, _TOGETHER), count=len(names))


def number_of(worker: WorkerFacts, name: str) -> int:
    """Return a number that a worker reports of itself, 0 for anything else."""
    text = worker.facts.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _lost(ask: Planner, workers: Sequence[WorkerFacts], now_ms: int) -> Plan[Counter[str]]:
    """Count the jobs that silent workers hold."""
    gone = [worker for worker in workers if is_silent(worker, now_ms)]
    found = Counter[str]()
    for worker in gone[:_MOST_SILENT]:
        found[worker.name] = len((yield from held(ask, worker.name)))
    return +found
