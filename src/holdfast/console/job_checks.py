"""The doctor's checks of a namespace: leases, workers, queues, throttles, recurrences and failures that are stuck.

Lists are read in bounded pages; what is beyond them is not looked at, and the findings name how much was.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from shlex import quote
from typing import Any, Final, cast

import msgspec

from holdfast.client.reasons import argument, span
from holdfast.codecs import decode
from holdfast.commands.admin import Patterns
from holdfast.commands.failures import START, Failures
from holdfast.commands.jobs import JobGet
from holdfast.commands.queues import CountQueues, ThrottleGet, ThrottleNames
from holdfast.commands.views import Cursor, Explain, ListSet
from holdfast.commands.workers import MAX_ROWS, HeldJob, WorkerFacts, WorkerJobs, Workers
from holdfast.console.findings import Calls, Finding, Verdict
from holdfast.errors import CodecError
from holdfast.models import Counts
from holdfast.printable import one_line
from holdfast.wire.plans import Plan
from holdfast.work.queues.patterns import resolve_queue_names

MOST_QUEUES: Final = 5_000
_COUNTED: Final = 25
_MOST_WORKERS, _MOST_LEASES, _LEASES_A_CALL = 1_024, 5_000, 100
_MOST_THROTTLES, _THROTTLES_A_CALL, _MOST_FULL, _MOST_HOLDERS = 1_000, 50, 10, 64
_MOST_GROUPS, _GROUPS_A_CALL = 2_000, 100
_MOST_LOOKED_AT: Final = 20
_EXPLAINED: Final = 10
_MINUTE, _DAY = 60_000, 86_400_000
SILENT: Final = 2 * _MINUTE
"""Milliseconds without a heartbeat after which a worker counts as silent; it sends one every ten seconds, a program that
pops by itself one a minute."""
_LONG_ENDED: Final = 5 * _MINUTE
_MANY_FAILURES: Final = 10_000
_MANY_PREEMPTIONS: Final = 5


class NamespaceFacts(msgspec.Struct, frozen=True):
    """What the checks of a namespace read once: times in ms, `flags` complete a command line."""

    now: int
    flags: str
    queues: Sequence[Counts]
    is_whole: bool
    workers: Sequence[WorkerFacts]
    held: Sequence[HeldJob]

    def silence(self, worker: WorkerFacts) -> int:
        """Return how long ago a worker sent a heartbeat."""
        return self.now - worker.seen_ms


def namespace_facts(calls: Calls, now: int, flags: str) -> Plan[NamespaceFacts]:
    """Read the queues, the workers and the leases of a namespace. Raises NotChecked."""
    names, is_whole = yield from _queue_names(calls)
    queues: list[Counts] = []
    for at in range(0, len(names), _COUNTED):
        queues += yield from calls.ask(CountQueues(names[at : at + _COUNTED]))
    workers = yield from _workers(calls)
    held = yield from _held(calls)
    return NamespaceFacts(now, flags, queues, is_whole, workers, held)


def _queue_names(calls: Calls) -> Plan[tuple[list[str], bool]]:
    names: list[str] = []
    after: Cursor | None = None
    while len(names) < MOST_QUEUES:
        page = yield from calls.ask(ListSet("queues", "", after, 500))
        names += page.names
        after = page.next
        if after is None:
            return names, True
    return names, False


def _workers(calls: Calls) -> Plan[list[WorkerFacts]]:
    found: dict[str, WorkerFacts] = {}
    after = ("", "")
    while len(found) < _MOST_WORKERS:
        page = yield from calls.ask(Workers(after))
        found |= {worker.name: worker for worker in page}
        if len(page) < MAX_ROWS:
            break
        after = (str(page[-1].seen_ms), page[-1].name)
    return list(found.values())


def _held(calls: Calls) -> Plan[list[HeldJob]]:
    found: list[HeldJob] = []
    cursor = ""
    for _ in range(_MOST_LEASES // _LEASES_A_CALL):
        page = yield from calls.ask(WorkerJobs("", cursor, _LEASES_A_CALL))
        found += page.jobs
        cursor = page.cursor
        if not cursor:
            break
    return found


def queues(facts: NamespaceFacts) -> Finding:
    """Count the jobs that were looked at."""
    waiting = sum(counts.waiting for counts in facts.queues)
    text = (
        f"{_quantity(len(facts.queues), 'queue')} with {waiting} waiting and {len(facts.held)} leased jobs, "
        f"{_quantity(len(facts.workers), 'worker')}"
    )
    if facts.is_whole:
        return Finding("queues", "ok", f"{text}.")
    return Finding("queues", "note", f"{text}; only the first {len(facts.queues)} queues were checked.")


def versions(facts: NamespaceFacts) -> Finding:
    """Check that all workers have one version."""
    found = Counter(
        one_line(worker.facts["version"]) for worker in facts.workers if worker.facts.get("version")
    )
    shown = ", ".join(f"{version} ({count})" for version, count in sorted(found.items()))
    if len(found) > 1:
        text = f"Workers of {len(found)} versions: {shown}."
        return Finding(
            "worker versions", "warn", text, "finish the upgrade: restart the workers of the older version"
        )
    return Finding(
        "worker versions", "ok", f"All workers: {shown}." if shown else "No worker reports a version."
    )


def leases(calls: Calls, facts: NamespaceFacts) -> Plan[Finding]:
    """Look for leases that ended long ago: nobody takes jobs from their queues."""
    stalled = [counts for counts in facts.queues if counts.stalled][:_MOST_LOOKED_AT]
    pages = yield from calls.ask_all([ListSet("stalled", counts.name, None, 1) for counts in stalled])
    ended = [
        (facts.now - float(page.entries[0].score), counts)
        for counts, page in zip(stalled, pages, strict=True)
        if page.entries
    ]
    long_ago = [(age, counts) for age, counts in ended if age > _LONG_ENDED]
    if not long_ago:
        return Finding("leases", "ok", "No lease ended long ago.")
    age, counts = max(long_ago, key=lambda pair: pair[0])
    text = (
        f"{_quantity(sum(one.stalled for _, one in long_ago), 'lease')} ended without another worker for the job, "
        f"the oldest {span(age)} ago in queue {one_line(counts.name)}."
    )
    return Finding("leases", "warn", text, f"holdfast worker -q {quote(counts.name)}{facts.flags}")


def silent_workers(facts: NamespaceFacts) -> Finding:
    """Look for workers that send no heartbeats and hold leases."""
    seen = {worker.name: facts.silence(worker) for worker in facts.workers}
    unknown = 0 if len(seen) >= _MOST_WORKERS else _DAY
    lost = Counter(held.worker for held in facts.held if seen.get(held.worker, unknown) > SILENT)
    if not lost:
        return Finding("silent workers", "ok", "Every worker that holds leases sends heartbeats.")
    [(name, most)] = lost.most_common(1)
    silence = f"silent for {span(seen[name])}" if name in seen else "no worker is known by that name"
    text = (
        f"{_quantity(len(lost), 'worker')} without heartbeats hold{'s' * (len(lost) == 1)} "
        f"{_quantity(lost.total(), 'lease')}, most of them {one_line(name)} ({most}; {silence})."
    )
    return Finding(
        "silent workers", "warn", text, "look at the worker's machine; a lease that ends is handed out again"
    )


def pauses(facts: NamespaceFacts) -> Finding:
    """Look for queues that have been paused for more than a day."""
    old = [
        counts
        for counts in facts.queues
        if counts.paused and counts.paused_since_ms and facts.now - counts.paused_since_ms > _DAY
    ]
    if not old:
        paused = sum(counts.paused for counts in facts.queues)
        return Finding("pauses", "ok", f"{_quantity(paused, 'queue')} paused, none for more than a day.")
    oldest = min(old, key=lambda counts: counts.paused_since_ms)
    who = f" by {one_line(oldest.paused_by)}" if oldest.paused_by else ""
    why = f": {one_line(oldest.paused_why)}" if oldest.paused_why else ""
    text = (
        f"{_quantity(len(old), 'queue')} paused for more than a day, the longest {one_line(oldest.name)} for "
        f"{span(facts.now - oldest.paused_since_ms)}{who}{why}; {_quantity(oldest.waiting, 'job')} waiting there."
    )
    return Finding("pauses", "warn", text, f"client.queues[{oldest.name!r}].unpause()")


def idle_queues(calls: Calls, facts: NamespaceFacts) -> Plan[Finding]:
    """Look for queues in which jobs wait and from which no worker takes jobs."""
    waiting = [
        counts
        for counts in facts.queues
        if counts.waiting and not counts.paused and facts.now - _oldest(counts) > _MINUTE
    ]
    taking = [worker for worker in facts.workers if not worker.quiet and facts.silence(worker) <= SILENT]
    known = [worker for worker in taking if "queues" in worker.facts]
    mapping = yield from _identifiers(calls, known)
    lists = {worker.facts["queues"] for worker in known}
    served = set(_served([counts.name for counts in waiting], mapping, map(_names, lists)))
    idle = [counts for counts in waiting if counts.name not in served]
    if not idle:
        return Finding(
            "idle queues", "ok", "Every queue in which jobs have waited for a minute has a worker."
        )
    oldest = min(idle, key=_oldest)
    text = (
        f"{_quantity(len(idle), 'queue')} with {_quantity(sum(one.waiting for one in idle), 'waiting job')} and no worker, "
        f"such as {one_line(oldest.name)}: {oldest.waiting} wait, the first for {span(facts.now - _oldest(oldest))}."
    )
    if len(known) < len(taking):
        text += f" Programs that pop jobs by themselves ({len(taking) - len(known)}) may serve it."
    verdict: Verdict = "note" if len(known) < len(taking) else "warn"
    return Finding("idle queues", verdict, text, f"holdfast worker -q {quote(oldest.name)}{facts.flags}")


def _oldest(counts: Counts) -> int:
    """Return since when the next job waits: it was queued, or became due and no pop has made it ready."""
    return counts.oldest_ms or counts.next_ms


def _identifiers(calls: Calls, workers: Sequence[WorkerFacts]) -> Plan[dict[str, list[str]]]:
    """Return the patterns of each identifier, if a worker uses one."""
    if not any("@" in worker.facts["queues"] for worker in workers):
        return {}
    found = yield from calls.ask(Patterns())
    return {name: _names(raw) for name, raw in found.identifiers.items()}


def _served(
    names: Sequence[str], mapping: dict[str, list[str]], lists: Iterable[Sequence[str]]
) -> Iterable[str]:
    for patterns in lists:
        yield from resolve_queue_names(mapping, names, patterns)


def _names(raw: str) -> list[str]:
    """Return a list of names that was stored as JSON, an empty one for anything else."""
    try:
        found: object = decode(raw)
    except CodecError:
        return []
    return (
        [one for one in cast("list[object]", found) if isinstance(one, str)]
        if isinstance(found, list)
        else []
    )


def throttles(calls: Calls, facts: NamespaceFacts) -> Plan[Finding]:
    """Look for throttles that are full of jobs which do not exist or do not run any more."""
    names: list[str] = []
    cursor, more = "0", True
    while more and len(names) < _MOST_THROTTLES:
        cursor, some = yield from calls.ask(ThrottleNames(cursor))
        names += some
        more = cursor != "0"
    full: list[str] = []
    for at in range(0, len(names), _THROTTLES_A_CALL):
        some = names[at : at + _THROTTLES_A_CALL]
        for name, found in zip(
            some, (yield from calls.ask_all([ThrottleGet(one) for one in some])), strict=True
        ):
            if found.used >= found.maximum > 0 and found.pending:
                full.append(name)
    for name in full[:_MOST_FULL]:
        gone = yield from _gone_holders(calls, name)
        if gone:
            text = (
                f"Throttle {one_line(name)} is full, and jobs that do not run hold {len(gone)} of its slots, "
                f"such as {one_line(gone[0])}."
            )
            return Finding("throttles", "bad", text, f"client.throttles[{name!r}].release({gone[0]!r})")
    return Finding(
        "throttles", "ok", f"{_quantity(len(names), 'throttle')}, {len(full)} full, all of running jobs."
    )


def _gone_holders(calls: Calls, throttle: str) -> Plan[list[str]]:
    page = yield from calls.ask(ListSet("holders", throttle, None, _MOST_HOLDERS))
    if not page.names:
        return []
    jobs = yield from calls.ask(JobGet(page.names))
    pairs = zip(page.names, jobs, strict=True)
    return [jid for jid, job in pairs if job is None or job.state in ("complete", "failed")]


def recurrences(calls: Calls, facts: NamespaceFacts) -> Plan[Finding]:
    """Look for recurrences whose next job should have been put: their queues have no worker."""
    having = [counts for counts in facts.queues if counts.recurring and not counts.paused][
        : 10 * _MOST_LOOKED_AT
    ]
    pages = yield from calls.ask_all([ListSet("recurring", counts.name, None, 1) for counts in having])
    late = [
        (facts.now - float(page.entries[0].score), page.names[0], counts.name)
        for counts, page in zip(having, pages, strict=True)
        if page.entries
    ]
    late = [one for one in late if _MINUTE < one[0] < float("inf")]
    if not late:
        return Finding(
            "recurrences",
            "ok",
            f"{_quantity(sum(one.recurring for one in having), 'recurrence')}, none is late.",
        )
    age, jid, queue = max(late)
    text = (
        f"Recurrences of {_quantity(len(late), 'queue')} are late, the most {one_line(jid)} in queue {one_line(queue)}, "
        f"by {span(age)}: a worker that takes jobs from a queue puts them."
    )
    return Finding("recurrences", "warn", text, f"holdfast worker -q {quote(queue)}{facts.flags}")


def preemptions(calls: Calls, facts: NamespaceFacts) -> Plan[Finding]:
    """Look for jobs that were stopped again and again, among the oldest leases and the next jobs of the fullest queues."""
    oldest = sorted(facts.held, key=lambda held: held.since_ms)[:_MOST_LOOKED_AT]
    fullest = sorted(facts.queues, key=lambda counts: -counts.waiting)[:_MOST_LOOKED_AT]
    pages = yield from calls.ask_all(
        [ListSet("waiting", one.name, None, 2) for one in fullest if one.waiting]
    )
    jids = [held.jid for held in oldest] + [jid for page in pages for jid in page.names]
    found: list[dict[str, Any]] = []
    for at in range(0, len(jids), _EXPLAINED):
        found += yield from calls.ask_all([Explain(jid) for jid in jids[at : at + _EXPLAINED]])
    often = [
        (int(facts_["preempted"]), jid)
        for jid, facts_ in zip(jids, found, strict=True)
        if int(facts_.get("preempted", 0)) >= _MANY_PREEMPTIONS
    ]
    if not often:
        return Finding(
            "preemptions", "ok", f"None of {_quantity(len(jids), 'job')} looked at was preempted often."
        )
    count, jid = max(often)
    text = (
        f"{_quantity(len(often), 'job')} preempted again and again, the most {one_line(jid)}, {count} times."
    )
    return Finding("preemptions", "warn", text, f"holdfast jobs why{facts.flags} {argument(jid)}")


def failures(calls: Calls, facts: NamespaceFacts) -> Plan[Finding]:
    """Look for failure groups with very many jobs: failed jobs are kept until somebody retries or cancels them."""
    sizes: dict[str, int] = {}
    cursor: str | None = START
    while cursor is not None and len(sizes) < _MOST_GROUPS:
        cursor, some = yield from calls.ask(Failures(cursor, _GROUPS_A_CALL))
        sizes |= some
    total = sum(sizes.values())
    text = f"{_quantity(total, 'failed job')} in {_quantity(len(sizes), 'group')}"
    large = [name for name, size in sizes.items() if size > _MANY_FAILURES]
    if not large:
        return Finding("failures", "ok", f"{text}.")
    most = max(large, key=lambda name: sizes[name])
    text = f"{text}; {one_line(most)} alone has {sizes[most]}."
    return Finding("failures", "warn", text, f"client.unfail({most!r}, queue) or client.bulk_cancel(jids)")


def _quantity(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


Check = Callable[[Calls, NamespaceFacts], Plan[Finding]]


def _of(check: Callable[[NamespaceFacts], Finding]) -> Check:
    def plan(calls: Calls, facts: NamespaceFacts) -> Plan[Finding]:
        yield from ()
        return check(facts)

    return plan


CHECKS: Final[dict[str, Check]] = {
    "queues": _of(queues),
    "worker versions": _of(versions),
    "leases": leases,
    "silent workers": _of(silent_workers),
    "idle queues": idle_queues,
    "pauses": _of(pauses),
    "throttles": throttles,
    "recurrences": recurrences,
    "preemptions": preemptions,
    "failures": failures,
}
