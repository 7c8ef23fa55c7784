"""Plans of several calls about queues, jobs and failure groups, for the methods of clients and the console."""

from collections.abc import Callable, Sequence
from time import time
from typing import Final, TypeVar

from holdfast.commands import Command
from holdfast.commands.admin import Info
from holdfast.commands.attributes import Tracked
from holdfast.commands.failures import (
    MAX_UNFAILED,
    START,
    Failed,
    FailureGroup,
    FailureGroups,
    Failures,
    Unfail,
)
from holdfast.commands.jobs import JobGet
from holdfast.commands.outcomes import MAX_OUTCOMES, Timeout
from holdfast.commands.queues import CountQueues, Peek, QueueNames
from holdfast.commands.views import ListSet
from holdfast.errors import JobNotFound, Refused, WrongState
from holdfast.models import Counts, JobFacts
from holdfast.settings import MAX_BATCH
from holdfast.wire.exchange import exchange
from holdfast.wire.plans import Plan, Planner
from holdfast.wire.shards import Shard

R = TypeVar("R")
S = TypeVar("S")

TOO_MANY: Final = "HF_TOO_MANY"
COUNTED_AT_ONCE: Final = 64


def in_slices(
    ask: Planner, command_of: Callable[[Sequence[S]], Command[list[R]]], names: Sequence[S], found: list[R]
) -> Plan[None]:
    """Call `ask` for slices of up to 512 `names`, smaller ones if the core refuses a call as too large, until a reply is empty.

    Appends the replies to `found` as they come. Raises any other refusal.
    """
    at, size = 0, MAX_BATCH
    while at < len(names):
        some = names[at : at + size]
        try:
            results = yield from ask(command_of(some))
        except Refused as refused:
            if refused.code != TOO_MANY or len(some) == 1:
                raise
            size = len(some) // 2
            continue
        if not results:
            break
        found += results
        at, size = at + len(some), min(2 * size, MAX_BATCH)


def found_jobs(ask: Planner, jids: Sequence[str]) -> Plan[list[JobFacts | None]]:
    """Return the facts of any number of jobs, None for an unknown one."""
    found: list[JobFacts | None] = []
    yield from in_slices(ask, JobGet, jids, found)
    return found


def peeked_jobs(ask: Planner, queue: str, offset: int, count: int) -> Plan[list[JobFacts]]:
    """Return the facts of up to `count` jobs that would be popped next, without the first `offset`."""
    found: list[JobFacts] = []
    places = range(offset, offset + count)
    yield from in_slices(ask, lambda some: Peek(queue, some[0], len(some)), places, found)
    return found


def failed_jobs(ask: Planner, group: str, offset: int, count: int) -> Plan[tuple[int, list[JobFacts]]]:
    """Return the size of a failure group, and the facts of one page of its jobs that still exist."""
    total, jids = yield from ask(Failed(group, offset, count))
    if not jids:
        return total, []
    found = yield from found_jobs(ask, jids)
    return total, [facts for facts in found if facts is not None]


def all_counts(ask: Planner) -> Plan[list[Counts]]:
    """Return the counts of every known queue, in order of first use."""
    names = yield from ask(QueueNames())
    return (yield from counts_of(ask, names))


def counts_of(ask: Planner, names: Sequence[str]) -> Plan[list[Counts]]:
    """Return the counts of these queues, in calls that are short even if all of them are busy."""
    rows: list[Counts] = []
    for at in range(0, len(names), COUNTED_AT_ONCE):
        rows += yield from ask(CountQueues(names[at : at + COUNTED_AT_ONCE]))
    return rows


def failed_counts(ask: Planner) -> Plan[dict[str, int]]:
    """Return how many jobs each failure group holds."""
    found: dict[str, int] = {}
    cursor: str | None = START
    while cursor is not None:
        cursor, some = yield from ask(Failures(cursor))
        found.update(some)
    return found


def all_failure_groups(ask: Planner) -> Plan[list[FailureGroup]]:
    """Return every failure group, the one with the latest failure first."""
    found: dict[str, FailureGroup] = {}
    cursor: str | None = START
    while cursor is not None:
        cursor, some = yield from ask(FailureGroups(cursor))
        found.update({group.name: group for group in some})
    return sorted(found.values(), key=lambda group: (-group.last_ms, group.name))


def unfailed(ask: Planner, queue: str, group: str, count: int) -> Plan[int]:
    """Put up to `count` failed jobs of `group` into `queue`, in steps. Returns how many."""
    moved = 0
    while moved < count:
        step = min(count - moved, MAX_UNFAILED)
        some = yield from ask(Unfail(queue, group, step))
        if not some:
            break
        moved += some
    return moved


def stopped(ask: Planner, queue: str) -> Plan[int]:
    """End the leases of all running jobs of a queue, which should be paused. Returns how many."""
    count = 0
    for state in ("running", "stalled"):
        after, more = None, True
        while more:
            page = yield from ask(ListSet(state, queue, after, MAX_OUTCOMES))
            after, more = page.next, page.next is not None
            if page.names:
                count += yield from _timed_out(ask, page.names)
    return count


def _timed_out(ask: Planner, jids: Sequence[str]) -> Plan[int]:
    """End leases; one by one if the call for all is refused because one of them has ended."""
    try:
        return (yield from ask(Timeout(jids)))
    except (WrongState, JobNotFound):
        if len(jids) == 1:
            return 0
    count = 0
    for jid in jids:
        count += yield from _timed_out(ask, (jid,))
    return count


def tracked_jobs(ask: Planner) -> Plan[tuple[list[JobFacts], list[str]]]:
    """Return the facts of the tracked jobs, those tracked longest first, and the tracked jids without a job."""
    marks = yield from ask(Tracked())
    there = [mark.jid for mark in marks if mark.exists]
    found = yield from found_jobs(ask, there)
    jobs = [facts for facts in found if facts is not None]
    return jobs, [mark.jid for mark in marks if not mark.exists]


def time_of(shard: Shard) -> Plan[float]:
    """Return epoch seconds by this machine's clock; in a test root by its own clock, which a test moves."""
    info = shard.info
    if info is None or info.is_test:
        info = yield from exchange(shard, Info())
    return info.now_ms / 1000 if info.is_test else time()
