"""The doctor's checks of a namespace: those of the rules for what needs attention, and what takes more reading.

Lists are read in bounded pages; what is beyond them is not looked at, and the findings name how much was.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from holdfast.client.reasons import argument
from holdfast.commands.queues import CountQueues
from holdfast.commands.views import Cursor, Explain, ListSet
from holdfast.commands.workers import MAX_ROWS, HeldJob, WorkerFacts, WorkerJobs, Workers
from holdfast.console.health.attention import KINDS, ORDER, NamespaceFacts, Severity, is_silent
from holdfast.console.health.findings import Calls, Finding, Verdict
from holdfast.console.health.triage import RULES, Rule
from holdfast.models import Counts
from holdfast.printable import one_line
from holdfast.text import counted, with_counts
from holdfast.wire.meeting import release_of
from holdfast.wire.plans import Plan

MOST_QUEUES: Final = 5_000
_COUNTED: Final = 25
_MOST_WORKERS, _MOST_LEASES, _LEASES_A_CALL = 1_024, 5_000, 100
_MOST_LOOKED_AT: Final = 20
_EXPLAINED: Final = 10
_NAMED: Final = 5
_MANY_PREEMPTIONS: Final = 5
_VERDICTS: Final[Mapping[Severity, Verdict]] = {"urgent": "bad", "warning": "warn", "note": "note"}


class DoctorFacts(NamespaceFacts, frozen=True):
    """What the checks of a namespace read once. `is_whole`: all queues are among them."""

    is_whole: bool = True
    held: Sequence[HeldJob] = ()


def namespace_facts(calls: Calls, now: int, flags: str) -> Plan[DoctorFacts]:
    """Read the queues, the workers and the leases of a namespace. Raises NotChecked."""
    names, is_whole = yield from _queue_names(calls)
    queues: list[Counts] = []
    for at in range(0, len(names), _COUNTED):
        queues += yield from calls.ask(CountQueues(names[at : at + _COUNTED]))
    workers = yield from _workers(calls)
    held = yield from _held(calls)
    lost = _lost(held, workers, now)
    return DoctorFacts(now, flags, queues, workers, lost, is_whole=is_whole, held=held)


def _lost(held: Sequence[HeldJob], workers: Sequence[WorkerFacts], now: int) -> Counter[str]:
    """Count the leases of workers that are silent or not known; of so many workers that not all were read, the former."""
    silent = {worker.name: is_silent(worker, now) for worker in workers}
    others = len(workers) < _MOST_WORKERS
    return Counter(one.worker for one in held if silent.get(one.worker, others))


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


def queues(facts: DoctorFacts) -> Finding:
    """Count the jobs that were looked at."""
    waiting = sum(counts.waiting for counts in facts.queues)
    silent = sum(is_silent(worker, facts.now) for worker in facts.workers)
    text = (
        f"{counted(len(facts.queues), 'queue')} with {waiting} waiting and {len(facts.held)} leased jobs, "
        f"{counted(len(facts.workers) - silent, 'worker')}" + (f" and {silent} silent" if silent else "")
    )
    if facts.is_whole:
        return Finding("queues", "ok", f"{text}.")
    return Finding("queues", "note", f"{text}; only the first {len(facts.queues)} queues were checked.")


def versions(facts: DoctorFacts) -> Finding:
    """Check that all workers have one version."""
    by_name = {worker.name: one_line(worker.facts.get("version", ""))[:40] for worker in facts.workers}
    found = Counter(version for version in by_name.values() if version)
    shown = with_counts(dict(sorted(found.items())))
    if len(found) < 2:
        text = f"All workers: {shown}." if shown else "No worker reports a version."
        return Finding("worker versions", "ok", text)
    newest = max(found, key=lambda version: (release_of(version), version))
    older = sorted(name for name, version in by_name.items() if version not in ("", newest))
    text = f"Workers of {len(found)} versions: {shown}. Let the older ones finish, and restart them with {newest}."
    return Finding(
        "worker versions", "warn", text, f"holdfast workers quiet{facts.flags} {argument(*older[:_NAMED])}"
    )


def preemptions(calls: Calls, facts: DoctorFacts) -> Plan[Finding]:
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
            "preemptions", "ok", f"None of {counted(len(jids), 'job')} looked at was preempted often."
        )
    count, jid = max(often)
    text = f"{counted(len(often), 'job')} preempted again and again, the most {one_line(jid)}, {count} times."
    return Finding("preemptions", "warn", text, f"holdfast jobs why{facts.flags} {argument(jid)}")


Check = Callable[[Calls, DoctorFacts], Plan[Finding]]


def _by_rule(name: str, rule: Rule) -> Check:
    """Return the check that sums up what a rule finds."""

    def check(calls: Calls, facts: DoctorFacts) -> Plan[Finding]:
        fine, found = yield from rule(calls.ask, facts)
        if not found:
            return Finding(name, "ok", fine)
        worst = min(found, key=lambda one: (ORDER.index(one.severity), -one.jobs))
        text = worst.sentence[0].upper() + worst.sentence[1:]
        same = sum(one.kind == worst.kind for one in found)
        if same > 1:
            text = f"{same} {KINDS[worst.kind].together}, such as {worst.sentence}"
        return Finding(name, _VERDICTS[worst.severity], f"{text}.", worst.command)

    return check


def _of(check: Callable[[DoctorFacts], Finding]) -> Check:
    def plan(calls: Calls, facts: DoctorFacts) -> Plan[Finding]:
        yield from ()
        return check(facts)

    return plan


CHECKS: Final[dict[str, Check]] = {
    "queues": _of(queues),
    "worker versions": _of(versions),
    **{name: _by_rule(name, rule) for name, rule in RULES.items()},
    "preemptions": preemptions,
}
