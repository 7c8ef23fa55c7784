"""Failure groups page by page, with what a list of them shows of each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from holdfast.client.plans import all_failure_groups, found_jobs
from holdfast.code.failure import error_line
from holdfast.commands.failures import FailureGroup
from holdfast.console.filters import glob
from holdfast.console.read.job_queries import failed_queues
from holdfast.console.read.queries import HOUR_MS, Page, checked_limit
from holdfast.console.search.filter_values import Exact
from holdfast.errors import UsageError
from holdfast.settings import check_name, check_seconds, check_whole
from holdfast.wire.plans import Plan, Planner

SORTS: Final = ("name", "jobs", "first", "latest", "growth")
MOST_BY_QUEUE: Final = 200
"""How many groups are looked at for the queues of their jobs, when a list is of one queue."""
_BUSIEST: Final = 5
_RECENT: Final = 2
_LONGEST: Final = 366 * 86_400.0


class FailureLine(msgspec.Struct, frozen=True):
    """A failure group in a list: the class and the last line of its latest failure, and the queues of its newest jobs."""

    group: FailureGroup
    klass: str
    message: str
    queues: tuple[str, ...]


class FailureList(msgspec.Struct, frozen=True):
    """A page of failure groups; how many jobs and groups there are in all; those with most failures in the last 48 hours."""

    page: Page[FailureLine]
    jobs: int
    groups: int
    busiest: tuple[FailureGroup, ...]


def failed_of(group: str) -> str:
    """Return the filter of the failed jobs of a group."""
    return f"state:failed group:{Exact(check_name('group', group))}"


def growth(group: FailureGroup) -> float:
    """Return by how many the failures of the last two hours exceed the mean of the 46 hours before."""
    before = group.trend[:-_RECENT]
    return sum(group.trend[-_RECENT:]) - sum(before) * _RECENT / (len(before) or 1)


def failure_list(
    ask: Planner, pattern: str, queue: str, within: float, sort: str, after: str, limit: int, now_ms: int
) -> Plan[FailureList]:
    """Return a page of the failure groups whose name matches a glob.

    `queue` keeps those with jobs of that queue among their newest, `within` those with a failure in that many of the last seconds.
    """
    size, first = checked_limit(limit), _checked(sort, after)
    since = now_ms - check_seconds("within", within, 0.0, _LONGEST) * 1000 if within else 0
    known = yield from all_failure_groups(ask)
    matches = glob(pattern)
    found = _sorted([one for one in known if matches(one.name) and one.last_ms >= since], sort)
    if queue:
        found = yield from _of_queue(ask, found[:MOST_BY_QUEUE], check_name("queue", queue))
    lines = yield from _lines(ask, found[first : first + size])
    more = str(first + size) if len(found) > first + size else ""
    busiest = sorted(known, key=lambda one: (-sum(one.trend), one.name))[:_BUSIEST]
    return FailureList(
        Page(lines, more, len(found)),
        sum(one.count for one in known),
        len(known),
        tuple(one for one in busiest if any(one.trend)),
    )


def _checked(sort: str, after: str) -> int:
    if sort.removeprefix("-") not in SORTS:
        raise UsageError(f"sort: expected one of {', '.join(SORTS)}, got {sort!r:.80}")
    return check_whole("cursor", int(after or 0) if (after or "0").isdecimal() else after, 0, 1 << 40)


_KEYS: Final[Mapping[str, Callable[[FailureGroup], float]]] = {
    "jobs": lambda one: one.count,
    "first": lambda one: one.first_ms,
    "latest": lambda one: one.last_ms,
    "growth": growth,
}


def _sorted(groups: Sequence[FailureGroup], sort: str) -> list[FailureGroup]:
    """Return groups in an order, "-" before it for the largest first; those that are alike by name."""
    by_name, key = sorted(groups, key=lambda one: one.name), _KEYS.get(sort.removeprefix("-"))
    if key is None:
        return by_name[::-1] if sort.startswith("-") else by_name
    return sorted(by_name, key=key, reverse=sort.startswith("-"))


def _of_queue(ask: Planner, groups: Sequence[FailureGroup], queue: str) -> Plan[list[FailureGroup]]:
    queues = yield from failed_queues(ask, [one.name for one in groups])
    return [one for one in groups if queue in queues[one.name]]


def _lines(ask: Planner, groups: Sequence[FailureGroup]) -> Plan[tuple[FailureLine, ...]]:
    queues = yield from failed_queues(ask, [one.name for one in groups])
    newest = (yield from found_jobs(ask, [one.newest for one in groups])) if groups else []
    return tuple(
        FailureLine(
            group,
            job.klass if job else "",
            error_line(job.failure.message) if job and job.failure else "",
            queues[group.name],
        )
        for group, job in zip(groups, newest, strict=True)
    )


def hours_of(group: FailureGroup) -> tuple[tuple[int, int], ...]:
    """Return when each hour of the trend began, in epoch milliseconds, and its number of failures."""
    return tuple((group.trend_from_ms + at * HOUR_MS, count) for at, count in enumerate(group.trend))
