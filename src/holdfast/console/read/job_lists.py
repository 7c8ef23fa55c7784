"""Lists of jobs beside a search: completed ones with their results, tracked ones with marks whose job is gone, relatives of a job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from holdfast.commands.admin import ConfigGet, Info
from holdfast.commands.job_rows import JobRow
from holdfast.commands.jobs import Await, JobGet, JobsComplete
from holdfast.commands.operations import Scan
from holdfast.commands.views import Cursor, ListSet
from holdfast.console.read.namespace_queries import SettingsPlace
from holdfast.console.read.queries import checked_limit
from holdfast.console.search.search import STATES, row_of
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.settings import check_name, check_whole
from holdfast.wire.plans import Plan, Planner

# Completed jobs.


class Finished(msgspec.Struct, frozen=True):
    """A completed job, and its result as long as that is kept."""

    job: JobRow
    result: bytes | None


class CompletedPage(msgspec.Struct, frozen=True):
    """Completed jobs, the latest first, and how many are kept for how long; `oldest_ms` is when the oldest one ended."""

    rows: tuple[Finished, ...]
    next: str
    total: int
    oldest_ms: int
    kept_seconds: int
    kept_count: int


_KEPT: Final[Mapping[str, int]] = {"jobs-history": 604_800, "jobs-history-count": 50_000}


def completed(ask: Planner, after: str, limit: int) -> Plan[CompletedPage]:
    """Return a page of completed jobs, the latest first."""
    size, place = checked_limit(limit), SettingsPlace.parse(after)
    page = yield from ask(Scan("completed", "", place.after, size, "t"))
    results = (yield from ask(Await([row.jid for row in page.jobs]))) if page.jobs else []
    rows = tuple(Finished(row, found.result) for row, found in zip(page.jobs, results, strict=True))
    oldest = yield from _oldest(ask, page.size)
    stored = yield from ask(ConfigGet(tuple(_KEPT)))
    kept = [
        int(value) if (value := stored.get(name) or "").isdecimal() else default
        for name, default in _KEPT.items()
    ]
    return CompletedPage(
        rows, str(SettingsPlace("completed", page.next)) if page.next else "", page.size, oldest, *kept
    )


def _oldest(ask: Planner, size: int) -> Plan[int]:
    """Return when the completed job ended that is kept longest; 0 if it was deleted meanwhile."""
    jids = (yield from ask(JobsComplete(size - 1, 1))) if size else []
    [facts] = (yield from ask(JobGet(jids))) if jids else [None]
    return facts.ended_ms if facts else 0


# Tracked jobs.

_MOST_MARKS: Final = 5000
_AT_ONCE: Final = 512
GONE: Final = "expired"
"""The state of a mark whose job does not exist any more."""


class TrackedJob(msgspec.Struct, frozen=True):
    """A tracked job since when; its state is `expired` if the job does not exist any more."""

    job: JobRow
    since_ms: int

    @property
    def changed_ms(self) -> int:
        """When something happened to it last."""
        job = self.job
        return max(job.created_ms, job.queued_ms, job.popped_ms, job.ended_ms, job.failed_ms)


class TrackedPage(msgspec.Struct, frozen=True):
    """Tracked jobs, those tracked last first, and how many are in each state; all is counted up to 5,000 of `total`."""

    rows: tuple[TrackedJob, ...]
    next: str
    counts: Mapping[str, int]
    looked: int
    total: int


def tracked(ask: Planner, state: str, after: str, limit: int) -> Plan[TrackedPage]:
    """Return a page of the tracked jobs in one state ("": in any; `expired`: those that are gone). Raises UsageError."""
    if state and state not in (*STATES, GONE):
        raise UsageError(f"state: expected one of {', '.join((*STATES, GONE))}, got {state!r:.80}")
    size, skipped = checked_limit(limit), _first_of(after)
    found: list[TrackedJob] = []
    cursor: Cursor | None = None
    looked, total = 0, 0
    while looked < _MOST_MARKS:
        marks = yield from ask(ListSet("tracked", "", cursor, _AT_ONCE))
        page = yield from ask(Scan("tracked", "", cursor, _AT_ONCE, "te"))
        rows = {row.jid: row for row in page.jobs}
        total = max(total, page.size)
        entries = marks.entries[: page.looked] if page.next else marks.entries
        looked += len(entries)
        found += [
            TrackedJob(rows.get(one.member) or JobRow(one.member, state=GONE), int(float(one.score)))
            for one in entries
        ]
        cursor = page.next
        if cursor is None:
            break
    chosen = [one for one in found if state in ("", one.job.state)]
    counts = Counter(one.job.state for one in found)
    more = str(skipped + size) if len(chosen) > skipped + size else ""
    return TrackedPage(tuple(chosen[skipped : skipped + size]), more, counts, looked, total)


def _first_of(after: str) -> int:
    return check_whole(
        "cursor", int(after) if after.isdecimal() and len(after) < 9 else after or 0, 0, 1 << 30
    )


# Tags.

_OF_TAG: Final = 64


def tag_states(ask: Planner, names: Sequence[str]) -> Plan[dict[str, Counter[str]]]:
    """Return how many of the first 64 jobs of each tag are in each state."""
    found: dict[str, Counter[str]] = {}
    for name in names:
        page = yield from ask(Scan("tagged", check_name("tag", name), None, _OF_TAG))
        found[name] = Counter(row.state for row in page.jobs)
    return found


# Relatives.

MOST_RELATIVES: Final = 60


class Relative(msgspec.Struct, frozen=True):
    """A job of a graph, which of the others it waits for, and how many of its relatives are not shown."""

    job: JobRow
    depends: tuple[str, ...]
    hidden: int = 0


class Family(msgspec.Struct, frozen=True):
    """A job with the jobs that it depends on and that depend on it, over any number of steps, the nearest first.

    `hidden` is how many were left out because there are too many.
    """

    jid: str
    members: tuple[Relative, ...]
    hidden: int


def family(ask: Planner, jid: str, most: int = MOST_RELATIVES) -> Plan[Family]:
    """Return the graph of the dependencies around a job: up to `most` jobs. An unknown job has none."""
    check_whole("most", most, 1, _AT_ONCE)
    known: dict[str, JobFacts | None] = {}
    level = [check_name("jid", jid)]
    while level and len(known) < most:
        some = level[: most - len(known)]
        known.update(zip(some, (yield from ask(JobGet(some))), strict=True))
        level = [one for one in dict.fromkeys(_near(known, some)) if one not in known]
    found = {name: facts for name, facts in known.items() if facts is not None}
    now = (yield from ask(Info())).now_ms
    members = tuple(
        Relative(
            msgspec.structs.replace(row_of(facts, now), data=b"", message=""),
            tuple(one for one in facts.dependencies if one in found),
            sum(one not in known for one in (*facts.dependencies, *facts.dependents)),
        )
        for facts in found.values()
    )
    return Family(jid, members, sum(one.hidden for one in members))


def _near(known: Mapping[str, JobFacts | None], jids: list[str]) -> list[str]:
    return [one for jid in jids if (facts := known[jid]) for one in (*facts.dependencies, *facts.dependents)]
