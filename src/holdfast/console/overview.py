"""The first look: how much there is of everything, and what needs attention, most urgent first."""

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final, Literal

import msgspec

from holdfast.commands.failures import FailureGroup
from holdfast.commands.views import ListSet
from holdfast.commands.workers import WorkerFacts
from holdfast.console.filter_values import Exact
from holdfast.console.filters import glob
from holdfast.console.queries import HOUR_MS, Throttle, all_workers, held, queues_of, throttles
from holdfast.models import Counts
from holdfast.wire.plans import Plan, Planner, all_counts, all_failure_groups

Severity = Literal["urgent", "warning", "note"]
SILENT_MS: Final = 30_000
"""A worker sends a heartbeat every ten seconds; one silent for longer than this counts as gone."""
STALE_MS: Final = 60_000
"""Waiting jobs that are older are worth a look when nothing takes them."""
MANY: Final = 20
SURGE: Final = 3.0
LONG_PAUSE_MS: Final = 24 * HOUR_MS
FULL: Final = 100
"""Throttles whose use is looked at for the overview."""


class Attention(msgspec.Struct, frozen=True):
    """Something that a person should look at: what, about which thing, the evidence, and the command that helps.

    `kind` names the rule: surge, no-worker, waiting-long, paused, stalled, worker-gone, throttle-full, not-allowed,
    overdue, operation.
    """

    severity: Severity
    kind: str
    subject: str
    text: str
    command: str = ""


class Overview(msgspec.Struct, frozen=True):
    """The counts of all queues together, what needs attention, the busiest queues, and the groups of the latest failures."""

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

    @property
    def sentence(self) -> str:
        """One sentence that says how it goes."""
        count = len(self.attention)
        if not self.queue_count:
            return "There are no queues yet."
        if not count:
            return "Nothing needs you."
        things = "one thing wants" if count == 1 else f"{count} things want"
        urgent = any(one.severity == "urgent" for one in self.attention)
        return f"{things.capitalize()} a look" + ("; the first is urgent." if urgent else ".")


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
_ORDER: Final = {"urgent": 0, "warning": 1, "note": 2}


def overview(ask: Planner, now_ms: int, most: int = 12) -> Plan[Overview]:
    """Return the overview, of at most `most` queues and groups. It reads the counts of all queues, and no job."""
    counts = yield from all_counts(ask)
    groups = yield from all_failure_groups(ask)
    workers = yield from all_workers(ask)
    tracked = yield from ask(ListSet("tracked", "", None, 512))
    full = yield from _full_throttles(ask, counts)
    found = [
        *_queue_findings(counts, workers, now_ms),
        *_group_findings(groups),
        *(yield from _worker_findings(ask, workers, now_ms)),
        *_throttle_findings(full),
    ]
    found = _gathered(sorted(found, key=lambda one: _ORDER[one.severity]))
    busiest = sorted(counts, key=lambda one: (-(one.running + one.waiting + one.failed), one.name))
    return Overview(
        now_ms,
        {name: sum(getattr(one, name) for one in counts) for name in _TOTALED},
        len(counts),
        len(groups),
        sum(group.trend[-1] for group in groups),
        len(workers),
        sum(number_of(worker, "slots") for worker in workers),
        sum(number_of(worker, "busy") for worker in workers),
        len(tracked.entries),
        tuple(found),
        tuple(busiest[:most]),
        tuple(groups[:most]),
    )


_TOGETHER: Final = 3
"""Findings of one kind that are shown one by one; more of them become one line."""


def _gathered(found: Sequence[Attention]) -> list[Attention]:
    """Return findings without long rows of the same kind: the first stands for all."""
    kinds = Counter(one.kind for one in found)
    shown: list[Attention] = []
    for one in found:
        if kinds[one.kind] <= _TOGETHER:
            shown.append(one)
        elif not any(other.kind == one.kind for other in shown):
            names = [other.subject for other in found if other.kind == one.kind]
            text = ", ".join(names[:_TOGETHER]) + f" and {len(names) - _TOGETHER} more"
            shown.append(
                Attention(one.severity, one.kind, f"{len(names)} {_ALL[one.kind]}", text, one.command)
            )
    return shown


_ALL: Final = {
    "surge": "groups with many more failures than usual",
    "no-worker": "queues with waiting jobs and no worker",
    "waiting-long": "queues whose next job has waited long",
    "paused": "paused queues with waiting jobs",
    "stalled": "queues with leases that have ended",
    "worker-gone": "silent workers that hold jobs",
    "throttle-full": "throttles that are full",
    "not-allowed": "groups of jobs whose code is not allowed",
}


def number_of(worker: WorkerFacts, name: str) -> int:
    """Return a number that a worker reports of itself, 0 for what is none."""
    text = worker.facts.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _queue_findings(
    counts: Sequence[Counts], workers: Sequence[WorkerFacts], now_ms: int
) -> Iterator[Attention]:
    served = _served(workers, now_ms)
    for one in counts:
        age = now_ms - one.oldest_ms if one.oldest_ms else 0
        if one.paused and one.waiting:
            text = f"paused by {one.paused_by or 'somebody'}, {one.waiting} waiting"
            severity: Severity = "warning" if now_ms - one.paused_since_ms > LONG_PAUSE_MS else "note"
            yield Attention(severity, "paused", one.name, text, f"holdfast queues resume {quote(one.name)}")
        elif one.waiting and not served(one.name) and not one.running:
            text = f"{one.waiting} waiting, and no worker takes from this queue"
            yield Attention("urgent", "no-worker", one.name, text, f"holdfast worker -q {quote(one.name)}")
        elif one.waiting and age > STALE_MS and not (one.limit and one.running >= one.limit):
            text = f"the next job has waited for {age // 1000} s, {one.waiting} waiting"
            yield Attention(
                "warning", "waiting-long", one.name, text, f"holdfast queues show {quote(one.name)}"
            )
        if one.stalled:
            text = f"{one.stalled} with a lease that has ended"
            yield Attention(
                "warning",
                "stalled",
                one.name,
                text,
                f"holdfast jobs list state:stalled {quote(f'queue:{Exact(one.name)}')}",
            )


def _served(workers: Sequence[WorkerFacts], now_ms: int) -> "_Served":
    alive = [worker for worker in workers if now_ms - worker.seen_ms <= SILENT_MS and not worker.quiet]
    return _Served({name for worker in alive for name in queues_of(worker)})


class _Served:
    """Whether a living worker takes from a queue, by the names and patterns that workers report."""

    def __init__(self, names: set[str]) -> None:
        self._names = {name for name in names if "*" not in name}
        self._patterns = [glob(name) for name in names if "*" in name and not name.startswith("!")]

    def __call__(self, queue: str) -> bool:
        return queue in self._names or any(matches(queue) for matches in self._patterns)


def _group_findings(groups: Sequence[FailureGroup]) -> Iterator[Attention]:
    for group in groups:
        last, before = group.trend[-1], group.trend[:-1]
        usual = sum(before) / max(len(before), 1)
        if last > MANY and last > SURGE * usual:
            text = f"{last} jobs failed in this hour, usually {usual:.0f}"
            yield Attention("urgent", "surge", group.name, text, f"holdfast failed show {quote(group.name)}")
        elif group.name.endswith("-NotAllowed") and group.count:
            text = f"{group.count} jobs name code that their workers may not run"
            yield Attention(
                "warning", "not-allowed", group.name, text, f"holdfast failed show {quote(group.name)}"
            )


def _worker_findings(ask: Planner, workers: Sequence[WorkerFacts], now_ms: int) -> Plan[list[Attention]]:
    gone = [worker for worker in workers if now_ms - worker.seen_ms > SILENT_MS and number_of(worker, "busy")]
    found: list[Attention] = []
    for worker in gone[:10]:
        leases = yield from held(ask, worker.name)
        if leases:
            silent = (now_ms - worker.seen_ms) // 1000
            text = f"silent for {silent} s, and it holds {len(leases)} jobs"
            found.append(
                Attention(
                    "urgent", "worker-gone", worker.name, text, f"holdfast workers show {quote(worker.name)}"
                )
            )
    return found


def _full_throttles(ask: Planner, counts: Sequence[Counts]) -> Plan[list[Throttle]]:
    page = yield from throttles(ask, "", FULL)
    if not any(one.throttled for one in counts):
        return []
    return [one for one in page.rows if one.facts.used >= one.facts.maximum > 0 and one.facts.pending]


def _throttle_findings(full: Sequence[Throttle]) -> Iterator[Attention]:
    for one in full:
        text = f"{one.facts.used} of {one.facts.maximum} slots are taken, and {one.facts.pending} jobs wait for one"
        yield Attention("note", "throttle-full", one.id, text, f"holdfast throttles show {quote(one.id)}")
