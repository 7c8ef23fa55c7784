"""The jobs that wait for others, over any number of steps, in the order in which all of them can be cancelled."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from holdfast.client.plans import found_jobs
from holdfast.commands.admin import Info
from holdfast.commands.dependencies import Dependents
from holdfast.commands.job_rows import JobRow
from holdfast.console.search.search import row_of
from holdfast.wire.plans import Plan, Planner

MOST: Final = 5000
"""Jobs that are looked at for others that wait for them."""


class DependentJobs(msgspec.Struct, frozen=True):
    """The jobs that wait for some others, over any number of steps: how many, and the first of them; `is_whole`: these are all."""

    count: int
    is_whole: bool
    first: tuple[JobRow, ...]


def waiters_of(ask: Planner, jids: Sequence[str], show: int) -> Plan[DependentJobs]:
    """Return the jobs that wait for some others and are not among them."""
    family, is_whole = yield from with_dependents(ask, jids)
    others = [jid for jid in reversed(family) if jid not in set(jids)]
    found = (yield from found_jobs(ask, others[:show])) if others else []
    now = (yield from ask(Info())).now_ms if others else 0
    return DependentJobs(
        len(others), is_whole, tuple(row_of(facts, now) for facts in found if facts is not None)
    )


def with_dependents(ask: Planner, jids: Sequence[str], most: int = MOST) -> Plan[tuple[list[str], bool]]:
    """Return jobs and all that wait for them, each behind those that wait for it; and whether these are all.

    Of a family that is larger, those are missing whose own dependents are not known.
    """
    children: dict[str, list[str]] = {}
    left = list(dict.fromkeys(jids))[::-1]
    while left and len(children) < most:
        jid = left.pop()
        if jid not in children:
            children[jid] = yield from _all_of(ask, jid, most)
            left += children[jid]
    return children_first(children), children.keys() >= set(left)


def _all_of(ask: Planner, jid: str, most: int) -> Plan[list[str]]:
    cursor, found = yield from ask(Dependents(jid))
    while cursor and len(found) < most:
        cursor, more = yield from ask(Dependents(jid, cursor))
        found += more
    return found


def children_first(children: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of a graph without circles, each behind its children."""
    order: dict[str, None] = {}
    for root in children:
        path = [(root, iter(children[root]))]
        while path:
            name, others = path[-1]
            following = next((one for one in others if one in children and one not in order), None)
            if following is None:
                order[name] = None
                path.pop()
            else:
                path.append((following, iter(children[following])))
    return list(order)
