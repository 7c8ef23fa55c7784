"""Cancelling any number of jobs, with or without their dependents."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from holdfast.client.plans import TOO_MANY, in_slices
from holdfast.commands.dependencies import Dependents
from holdfast.commands.jobs import CancelBy
from holdfast.errors import DependencyRefused, HoldfastError, Refused
from holdfast.settings import MAX_BATCH
from holdfast.text import counted
from holdfast.wire.exchange import exchange_all
from holdfast.wire.plans import Plan, Planner
from holdfast.wire.shards import Shard

TRIES: Final = 5
"""How often the dependents are read again, because a new one came while they were cancelled."""


def cancel_jobs(
    shard: Shard, ask: Planner, jids: Sequence[str], who: str, *, dependents: bool
) -> Plan[list[bool]]:
    """Cancel jobs as `who`; return True for each of `jids` that was cancelled.

    Up to 512 jobs are cancelled by one atomic call. A larger set, or one with more dependencies than a call may
    follow, takes several calls: dependents first, so that no job is left waiting for a cancelled one. With
    `dependents`, all jobs that wait for them are cancelled too. Raises DependencyRefused, before anything is
    cancelled unless a new dependent came meanwhile.
    """
    if len(jids) <= MAX_BATCH and not dependents:
        try:
            return (yield from ask(CancelBy(jids, who)))
        except Refused as refused:
            if refused.code != TOO_MANY:
                raise
    cancelled: dict[str, bool] = {}
    for left in reversed(range(TRIES)):
        children = yield from _read_dependents(shard, jids, whole=dependents)
        if not dependents:
            _check_closed(children)
        try:
            yield from _cancel_in_order(ask, leaves_first(jids, children), who, cancelled)
        except DependencyRefused as refused:
            if not dependents or not left:
                refused.add_note(
                    f"{counted(sum(cancelled.values()), 'job was', 'jobs were')} cancelled before that"
                )
                raise
        else:
            break
    return [cancelled.get(jid, False) for jid in jids]


def _cancel_in_order(ask: Planner, order: Sequence[str], who: str, cancelled: dict[str, bool]) -> Plan[None]:
    """Cancel slices of `order`, in which each job comes after its dependents."""
    results: list[bool] = []
    try:
        yield from in_slices(ask, lambda some: CancelBy(some, who), order, results)
    finally:
        for jid, result in zip(order, results, strict=False):
            cancelled[jid] = cancelled.get(jid, False) or result


def _check_closed(children: Mapping[str, Sequence[str]]) -> None:
    for jid, waiting in children.items():
        for child in waiting:
            if child not in children:
                sentence = f"{jid} is a dependency of {child}, which is not cancelled; cancel it too, or cancel with dependents=True"
                raise DependencyRefused(sentence, "HF_DEPENDENCY_REFUSED")


def _read_dependents(shard: Shard, jids: Iterable[str], *, whole: bool) -> Plan[dict[str, list[str]]]:
    """Return the dependents of each of `jids`; with `whole`, also those of the dependents, and so on."""
    children: dict[str, list[str]] = {}
    pending = [Dependents(jid) for jid in dict.fromkeys(jids)]
    while pending:
        some, pending = pending[:MAX_BATCH], pending[MAX_BATCH:]
        results = yield from exchange_all(shard, some)
        for command, result in zip(some, results, strict=True):
            if isinstance(result, HoldfastError):
                raise result
            cursor, page = result
            children.setdefault(command.jid, []).extend(page)
            if cursor:
                pending.append(Dependents(command.jid, cursor))
            for child in page if whole else ():
                if child not in children:
                    children[child] = []
                    pending.append(Dependents(child))
    return children


def leaves_first(jids: Iterable[str], children: Mapping[str, Sequence[str]]) -> list[str]:
    """Return `jids` and all their dependents that are keys of `children`, each job after its dependents."""
    order: list[str] = []
    seen: set[str] = set()
    for start in jids:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(children.get(start, ())))]
        while path:
            jid, below = path[-1]
            child = next((one for one in below if one in children and one not in seen), None)
            if child is None:
                order.append(jid)
                path.pop()
            else:
                seen.add(child)
                path.append((child, iter(children[child])))
    return order
