"""What of the store needs attention, and what fills its memory. It reads alone, so it works while the store is full."""

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any, Final, cast

import msgspec

from holdfast.commands.job_rows import JobRow
from holdfast.commands.operations import Scan
from holdfast.console.health.attention import Attention, Severity
from holdfast.console.health.findings import Calls, Finding, at_store
from holdfast.console.health.store_checks import (
    ALMOST_FULL,
    StoreFacts,
    eviction,
    is_full,
    memory,
    memory_share,
    persistence,
    replication,
    store_facts,
)
from holdfast.console.search.filter_values import Exact
from holdfast.models import Counts
from holdfast.text import counted, one_line, size
from holdfast.wire.plans import Call, ErrorReply, Plan, Planner
from holdfast.wire.shards import Shard

_PATIENCE: Final = 3.0
_STATES: Final = ("waiting", "scheduled", "running", "stalled", "throttled", "depends", "failed")
_SETS, _JOBS, _LEAST, _MOST = 60, 1_200, 8, 128
"""Limits of a sample: sets of jobs, jobs in all (about), jobs of one set."""
_SHOWN, _LEAST_SHARE = 5, 0.01
_LETTERS: Final = ("j", "b", "x", "i", "a")
"""The keys of a job: its record, long data, what is noted beside it, its history, its result (core/lua/base/keys.lua)."""
_TEXTS: Final = ("j", "b", "a")
"""Those of them that are texts, whose length every user of the core may read."""


class MemoryShare(msgspec.Struct, frozen=True):
    """The memory of the jobs of one class in one queue and state, by a sample: their number and bytes.

    `share` is the part of the bytes of all jobs that they take.
    """

    queue: str
    state: str
    klass: str
    jobs: int
    bytes: int
    share: float


class LargeJob(msgspec.Struct, frozen=True):
    """A job that takes much memory."""

    jid: str
    queue: str
    state: str
    klass: str
    bytes: int


class StoreMemory(msgspec.Struct, frozen=True):
    """How full the store is, in bytes (`limit` is 0 without one), whether it refuses puts, and what fills it.

    `shares` and `largest` are those among `looked` jobs, () while the store has room; `refused` counts the calls that were
    refused for want of memory since the store started. None of it is known if `is_known` is False.
    """

    is_known: bool
    used: int = 0
    limit: int = 0
    is_full: bool = False
    refused: int = 0
    looked: int = 0
    shares: tuple[MemoryShare, ...] = ()
    largest: tuple[LargeJob, ...] = ()


def store_health(
    ask: Planner, shard: Shard, counts: Sequence[Counts]
) -> Plan[tuple[StoreMemory, list[Attention]]]:
    """Return how full the store is, and what of it needs attention."""
    calls = Calls(shard, _PATIENCE)
    facts = yield from store_facts(calls, with_settings=False)
    found = _memory_of(facts)
    if not found.is_known:
        return found, [_at_store(_unknown(facts), shard)]
    attention = list(_of_checks(facts, shard))
    if found.is_full or memory_share(facts) >= ALMOST_FULL:
        found = yield from _filled(ask, calls, counts, found)
        attention.insert(0, _memory(facts, found, shard.settings.flags))
    return found, [_at_store(one, shard) for one in attention]


def _at_store(one: Attention, shard: Shard) -> Attention:
    settings = shard.settings
    return msgspec.structs.replace(
        one, command=at_store(one.command, settings), also=at_store(one.also, settings)
    )


def store_memory(shard: Shard) -> Plan[StoreMemory]:
    """Return how full the store is, without what fills it."""
    return _memory_of((yield from store_facts(Calls(shard, _PATIENCE), with_settings=False)))


def _memory_of(facts: StoreFacts) -> StoreMemory:
    used, limit = int(facts.number("used_memory")), int(facts.number("maxmemory"))
    return StoreMemory("used_memory" in facts.info, used, limit, is_full(facts), facts.refused)


def _unknown(facts: StoreFacts) -> Attention:
    why = facts.barred or "INFO has no line used_memory"
    text = f"memory and persistence of the store cannot be checked: {why}"
    return Attention("note", "store-unknown", "INFO", text, "redis-cli ACL SETUSER USER +info")


def _of_checks(facts: StoreFacts, shard: Shard) -> Iterator[Attention]:
    promised = shard.settings.durability != "memory" and facts.info.get("aof_enabled") != "1"
    saved = persistence(facts)
    if promised:
        text = f"durability {shard.settings.durability} is promised, but the append-only file is off: a crash may lose everything since the last snapshot"
        yield _attention(
            "urgent", "store-persistence", "persistence", text, "redis-cli CONFIG SET appendonly yes"
        )
    elif saved.verdict == "bad":
        yield _attention("urgent", "store-persistence", "persistence", saved.text, saved.remedy)
    evicts, evicted = eviction(facts), int(facts.number("evicted_keys"))
    if evicts.verdict != "ok":
        severity: Severity = "urgent" if evicts.verdict == "bad" or evicted else "warning"
        text = f"{evicts.text} {counted(evicted, 'key was', 'keys were')} deleted since the store started."
        yield _attention(severity, "store-eviction", "eviction", text, evicts.remedy)
    lags: Finding = replication(facts)
    if lags.verdict in ("warn", "bad"):
        yield _attention("urgent", "store-replication", "replication", lags.text, lags.remedy)


def _attention(severity: Severity, kind: str, subject: str, text: str, command: str) -> Attention:
    return Attention(severity, kind, subject, text.rstrip("."), command)


def _memory(facts: StoreFacts, found: StoreMemory, flags: str) -> Attention:
    """Return the finding about memory: how full, what fills it, and the two fastest remedies."""
    checked = memory(facts)
    text = checked.text.rstrip(".").replace("The store", "the store", 1)
    details = [
        f"{one.share:.0%} of it: {one.jobs} {one.state} jobs of queue {one_line(one.queue)}, class {one_line(one.klass)}, {size(one.bytes)}"
        for one in found.shares
    ]
    details += [
        f"large job {one_line(one.jid)}: {size(one.bytes)}, {one.state}, queue {one_line(one.queue)}, class {one_line(one.klass)}"
        for one in found.largest[:3]
    ]
    if found.shares:
        details.insert(
            0,
            f"estimated from {counted(found.looked, 'job')}, the jobs of this namespace take {_whole(found)}:",
        )
    raised = 2 * (found.limit or found.used) // 1_000_000 + 1
    raise_it = f"redis-cli CONFIG SET maxmemory {raised}mb"
    remove = _removal(found.shares[0], flags) if found.shares else ""
    first, second = (remove, raise_it) if remove else (raise_it, "")
    return Attention("urgent", "store-memory", "memory", text, first, also=second, details=tuple(details))


def _whole(found: StoreMemory) -> str:
    first = found.shares[0]
    return size(first.bytes / first.share) if first.share else size(0)


def _removal(largest: MemoryShare, flags: str) -> str:
    """Return the command that removes the jobs that take most: it counts them, and asks before it does."""
    if largest.state == "complete":
        return f"holdfast config set{flags} jobs-history-count {largest.jobs // 2}"
    if largest.state in ("running", "stalled"):
        return f"holdfast queues pause{flags} {quote(largest.queue)} --why 'the store is full'"
    text = f"queue:{Exact(largest.queue)} state:{largest.state} klass:{Exact(largest.klass)}"
    return f"holdfast jobs cancel{flags} --filter {quote(text)}"


# The sample.


def _filled(ask: Planner, calls: Calls, counts: Sequence[Counts], found: StoreMemory) -> Plan[StoreMemory]:
    """Return what fills the memory, from a sample of each of the largest sets of jobs."""
    sets = [(state, one.name, getattr(one, state)) for one in counts for state in _STATES]
    sets = sorted((one for one in sets if one[2]), key=lambda one: -one[2])[:_SETS]
    size = min(max(_JOBS // (len(sets) + 1), _LEAST), _MOST)
    bytes_of, jobs_of = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    jobs: list[LargeJob] = []
    for set, name, _ in [*sets, ("completed", "", 0)]:
        page = yield from ask(Scan(set, name, None, size))
        sizes = yield from _sizes(calls, page.jobs)
        weight = page.size / len(page.jobs) if page.jobs else 0.0
        for row, bytes in zip(page.jobs, sizes, strict=True):
            key = (row.queue, row.state, row.klass)
            bytes_of[key] += round(bytes * weight)
            jobs_of[key] += round(1000 * weight)
            jobs.append(LargeJob(row.jid, row.queue, row.state, row.klass, bytes))
    whole = bytes_of.total() or 1
    shares = [
        MemoryShare(*key, round(jobs_of[key] / 1000), bytes, bytes / whole)
        for key, bytes in bytes_of.most_common(_SHOWN)
        if bytes >= _LEAST_SHARE * whole
    ]
    jobs.sort(key=lambda one: -one.bytes)
    return msgspec.structs.replace(
        found, looked=len(jobs), shares=tuple(shares), largest=tuple(jobs[:_SHOWN])
    )


def _sizes(calls: Calls, rows: Sequence[JobRow]) -> Plan[list[int]]:
    """Return what each job takes in the store; without the right to MEMORY USAGE, the length of its texts."""
    if not rows:
        return []
    root = calls.shard.root
    wanted: list[Call] = [
        ("MEMORY", "USAGE", f"{root}{letter}:{row.jid}") for row in rows for letter in _LETTERS
    ]
    replies = yield from calls.send(*wanted)
    width = len(_LETTERS)
    if any(isinstance(reply, ErrorReply) for reply in replies):
        replies = yield from calls.send(
            *(("STRLEN", f"{root}{letter}:{row.jid}") for row in rows for letter in _TEXTS)
        )
        width = len(_TEXTS)
    numbers = [reply if isinstance(reply, int) else 0 for reply in cast("Sequence[Any]", replies)]
    return [sum(numbers[at : at + width]) for at in range(0, len(numbers), width)]
