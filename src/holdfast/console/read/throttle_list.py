"""Throttles as operators look at them: those of queues, named ones, and one with its jobs."""

from typing import Final

import msgspec

from holdfast.commands.failures import START
from holdfast.commands.job_rows import JobRow
from holdfast.commands.operations import Scan
from holdfast.commands.queues import QueueNames, ThrottleFacts, ThrottleGet, ThrottleNames
from holdfast.commands.views import ListSet
from holdfast.console.filters import glob
from holdfast.console.read.namespace_queries import SettingsPlace
from holdfast.console.read.queries import Page, Throttle, checked_limit, throttle
from holdfast.errors import UsageError
from holdfast.settings import OWN_THROTTLE
from holdfast.wire.plans import Plan, Planner

_MOST_CALLS: Final = 20
"""The largest number of calls that read names for one batch. Throttles of queues are skipped, so a batch may have fewer rows."""


class ThrottleDetail(msgspec.Struct, frozen=True):
    """A throttle with a page of the jobs that hold its slots, and of those that wait for one, the next one first."""

    throttle: Throttle
    holders: Page[JobRow]
    waiters: Page[JobRow]


def queue_throttles(ask: Planner, pattern: str, after: str, limit: int) -> Plan[Page[Throttle]]:
    """Return a page of the own throttles of the queues whose name matches a glob, by name."""
    size, matches = checked_limit(limit), glob(pattern)
    names = sorted(name for name in (yield from ask(QueueNames())) if matches(name))
    chosen = [name for name in names if name > after][: size + 1]
    facts: dict[str, ThrottleFacts] = {}
    for name in chosen[:size]:
        facts[OWN_THROTTLE + name] = yield from ask(ThrottleGet(OWN_THROTTLE + name))
    rows = tuple(Throttle(id, one) for id, one in facts.items())
    return Page(rows, chosen[size - 1] if len(chosen) > size else "", len(names))


def named_throttles(ask: Planner, pattern: str, after: str, limit: int) -> Plan[Page[Throttle]]:
    """Return a page of throttles with a limit whose name matches a glob, without those of queues, each with its first holder.

    The store returns the names in batches of about `limit`, sometimes of many more. A batch is sorted and shown on as many pages
    as it needs; the cursor of a page has the start of the batch and the last name shown.
    """
    size, (start, _, last) = checked_limit(limit), (after or START).partition(":")
    if not start.isdecimal():
        raise UsageError(f"a cursor is what the page before returned, not {after!r:.80}")
    cursor, batch = yield from _names(ask, pattern, start, size)
    names = [name for name in batch if name > last]
    rows: list[Throttle] = []
    for name in names[:size]:
        facts = yield from ask(ThrottleGet(name))
        first = (yield from ask(ListSet("holders", name, None, 1))).entries if facts.used else ()
        rows.append(Throttle(name, facts, tuple((one.member, float(one.score)) for one in first)))
    if len(names) > size:
        return Page(tuple(rows), f"{start}:{names[size - 1]}")
    return Page(tuple(rows), "" if cursor == START else cursor)


def _names(ask: Planner, pattern: str, cursor: str, size: int) -> Plan[tuple[str, list[str]]]:
    """Return the cursor of the next batch of named throttles, and the names of this one, sorted."""
    matches, names = glob(pattern), set[str]()
    for _ in range(_MOST_CALLS):
        cursor, some = yield from ask(ThrottleNames(cursor, size))
        names |= {name for name in some if not name.startswith(OWN_THROTTLE) and matches(name)}
        if cursor == START or len(names) >= size:
            break
    return cursor, sorted(names)


def throttle_detail(
    ask: Planner, id: str, holders_after: str, waiters_after: str, limit: int
) -> Plan[ThrottleDetail]:
    """Return one throttle with its jobs. Raises HoldfastError if nothing is known of it."""
    size = checked_limit(limit)
    found = yield from throttle(ask, id, 1)
    holders = yield from _jobs(ask, "holders", id, holders_after, size)
    return ThrottleDetail(found, holders, (yield from _jobs(ask, "pending", id, waiters_after, size)))


def _jobs(ask: Planner, set: str, id: str, after: str, size: int) -> Plan[Page[JobRow]]:
    page = yield from ask(Scan(set, id, SettingsPlace.parse(after).after, size))
    return Page(page.jobs, str(SettingsPlace(id, page.next)) if page.next else "", page.size)
