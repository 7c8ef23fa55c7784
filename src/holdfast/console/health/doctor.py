"""The doctor: checks of a store and a namespace, each a sentence with what to do.

`client.runner.run(examine(client.shard))` runs it with either client. It changes nothing, loads no core, and each of its calls
is small, so it may run on a store in trouble. If its user may not make a check, that is a finding too.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from shlex import quote
from typing import Any, Final, cast

from holdfast.client.reasons import argument
from holdfast.commands.admin import Info
from holdfast.commands.queues import CountQueues
from holdfast.commands.views import Cursor, Explain, ListSet
from holdfast.commands.workers import MAX_ROWS, HeldJob, WorkerFacts, WorkerJobs, Workers
from holdfast.console.health import store_checks
from holdfast.console.health.attention import KINDS, ORDER, NamespaceFacts, Severity, is_silent
from holdfast.console.health.findings import (
    Calls,
    Finding,
    NotChecked,
    Report,
    Verdict,
    addressed,
    refusal_text,
)
from holdfast.console.health.triage import RULES, Rule
from holdfast.core.library import library, shown_core
from holdfast.models import CoreInfo, Counts, text
from holdfast.text import counted, one_line, with_counts
from holdfast.wire.meeting import READS, WRITES, release_of
from holdfast.wire.plans import ErrorReply, Plan
from holdfast.wire.shards import Shard

# The doctor's checks of a namespace: those of the rules for what needs attention, and what takes more
# reading.
# Lists are read in bounded pages; what is beyond them is not looked at, and the findings name how much was.

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
    """Count the leases of workers that are silent or not known; of silent ones only, if not all workers were read."""
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
        f"{counted(len(facts.queues), 'queue')} with {counted(waiting, 'waiting job')} and {counted(len(facts.held), 'leased job')}, "
        f"{counted(len(facts.workers) - silent, 'worker')}" + (f" and {silent} silent" if silent else "")
    )
    if facts.is_whole:
        return Finding("queues", "ok", f"{text}.")
    return Finding("queues", "note", f"{text}; only the first {len(facts.queues):,} queues were checked.")


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


# Keys of queues that are not on the namespace's list of queues.

KEYS_A_CALL: Final = 1_000
_OF_QUEUES: Final = frozenset(("w", "l", "s", "q", "n", "t", "y", "D", "P", "fq", "o", "k", "m"))
_OF_DAYS: Final = frozenset(("z", "aw", "ar"))
"""The letters of the keys of a queue, as `core/lua/base/keys.lua` writes them; some end in a day."""
_GLOB: Final = re.compile(r"([*?\[\]\\])")


def leftovers(calls: Calls, known: Container[str], is_whole: bool, most: int) -> Plan[Finding]:
    """Look for keys of unknown queues among the first `most` keys of the store. `is_whole`: all queues are in `known`."""
    root = calls.shard.root
    if not most or not is_whole:
        why = "too many queues" if most else "--keys is 0"
        return Finding("leftovers", "note", f"Not checked: {why}.")
    found, looked_at, cursor = Counter[str](), 0, "0"
    pattern = _GLOB.sub(r"\\\1", root) + "*"
    while True:
        [reply] = yield from calls.send(("SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_A_CALL))
        if isinstance(reply, ErrorReply):
            text_ = f"SCAN is barred: {refusal_text(reply)}."
            return Finding("leftovers", "note", text_, "run the doctor as an administrator of the store")
        cursor, keys = text(reply[0]), cast("Sequence[bytes]", reply[1])
        looked_at += KEYS_A_CALL
        found.update(queue for key in keys if (queue := queue_of(text(key), root)) and queue not in known)
        if cursor == "0" or looked_at >= most:
            return _finding(found, looked_at if cursor != "0" else 0, root)


def queue_of(key: str, root: str) -> str:
    """Return the queue to which a key belongs, "" if to none."""
    letters, _, name = key.removeprefix(root).partition(":")
    if letters in _OF_DAYS:
        return name.rpartition(":")[0]
    return name if letters in _OF_QUEUES else ""


def _finding(found: Counter[str], looked_at: int, root: str) -> Finding:
    among = f"among the first {looked_at:,} keys of the store" if looked_at else "in the store"
    if not found:
        return Finding("leftovers", "ok", f"No keys of unknown queues {among}.")
    [(name, count)] = found.most_common(1)
    text_ = f"{counted(found.total(), 'key')} of {counted(len(found), 'unknown queue')} {among}, most of queue {one_line(name)} ({count:,}); delete those that are not needed with UNLINK."
    remedy = f"redis-cli --scan --pattern {quote(f'{root}*:{name}*')}"
    return Finding("leftovers", "note", text_, remedy)


MOST_KEYS: Final = 100_000
_LOAD: Final = "holdfast lua native | redis-cli -x FUNCTION LOAD REPLACE"


def examine(shard: Shard, patience: float = 3.0, keys: int = MOST_KEYS) -> Plan[Report]:
    """Run all checks; leftovers are looked for among `keys` keys. Raises TransportError if the store does not respond
    for `patience` seconds."""
    calls = Calls(shard, patience)
    facts = yield from store_checks.store_facts(calls)
    findings = [store_checks.version(facts)]
    core, info = yield from _core(calls)
    findings += core
    if facts.info:
        findings += [
            store_checks.persistence(facts),
            store_checks.eviction(facts),
            store_checks.memory(facts, shard.settings.flags),
            store_checks.replication(facts),
        ]
    findings.append((yield from store_checks.clock(calls)))
    findings.append((yield from store_checks.latency(calls)))
    findings.append((yield from store_checks.slow_log(calls)))
    if info is not None:
        findings += yield from _of_namespace(calls, info, keys)
    return Report(addressed(findings, shard.settings))


def _core(calls: Calls) -> Plan[tuple[list[Finding], CoreInfo | None]]:
    """Check the core in the store, and whether the namespace exists. Returns what the core reports, None without either."""
    info, listed = yield from calls.send(
        ("FCALL", "hf1_info", 1, calls.shard.root, *Info().words()),
        ("FUNCTION", "LIST", "LIBRARYNAME", "holdfast*"),
    )
    others = _libraries(listed)
    if not isinstance(info, ErrorReply):
        found = CoreInfo.from_row(info)
        return [_version_of(found, others), *_rights(found, calls.shard.settings.namespace)], found
    if "Function not found" in info.text:
        return [
            Finding("core", "note", "The store has no core of holdfast; the first client loads it.", _LOAD)
        ], None
    if info.code == "HF_NO_ROOT":
        name = calls.shard.settings.namespace
        return [
            Finding("namespace", "note", f"Namespace {name!r} does not exist yet.", "check --namespace")
        ], None
    return [Finding("core", "note", f"Not checked: {refusal_text(info)}.", "holdfast acl viewer")], None


def _rights(found: CoreInfo, namespace: str) -> list[Finding]:
    """Return a finding if the user of the URL may not run every command that the core runs for it."""
    if not found.denied:
        return []
    if set(found.denied) >= WRITES and not set(found.denied) & READS:
        return [Finding("rights", "note", "The user of this URL has read access only.")]
    text_ = f"The user of this URL may not run {', '.join(found.denied)}, so clients refuse to start."
    return [Finding("rights", "bad", text_, f"holdfast acl ROLE --namespace {namespace} | redis-cli")]


def _libraries(listed: object) -> list[str]:
    """Return the names of our libraries in a reply of FUNCTION LIST, none if it is barred."""
    if not isinstance(listed, list):
        return []
    return [text(row[1]) for row in cast("Sequence[Sequence[object]]", listed)]


def _version_of(found: CoreInfo, libraries: Sequence[str]) -> Finding:
    ours = library()
    shown = f"Core {shown_core(found.version, found.digest)}"
    if len(libraries) > 1:
        text_ = f"{shown}; {len(libraries)} libraries are loaded: {', '.join(sorted(libraries))}."
        return Finding("core", "note", text_, "FUNCTION DELETE the older one when no client uses it")
    if found.digest == ours.digest:
        return Finding("core", "ok", f"{shown}, the same as this program.")
    text_ = f"{shown}; this program has {shown_core(ours.version, ours.digest)}."
    if release_of(found.version) < release_of(ours.version):
        return Finding("core", "warn", text_, f"the next client of this release loads its core; or {_LOAD}")
    if release_of(found.version) > release_of(ours.version):
        return Finding("core", "note", text_, "upgrade this program")
    return Finding("core", "warn", text_, "use programs of one build, or a separate store for each")


def _of_namespace(calls: Calls, info: CoreInfo, keys: int) -> Plan[list[Finding]]:
    try:
        facts = yield from namespace_facts(calls, info.now_ms, calls.shard.settings.flags)
    except NotChecked as error:
        return [
            Finding(
                "queues",
                "note",
                f"Queues, workers and leases were not checked: {error}.",
                "holdfast acl viewer",
            )
        ]
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            findings.append((yield from check(calls, facts)))
        except NotChecked as error:
            findings.append(Finding(name, "note", f"Not checked: {error}.", "holdfast acl viewer"))
    findings.append((yield from _leftovers(calls, facts, keys)))
    return findings


def _leftovers(calls: Calls, facts: DoctorFacts, keys: int) -> Plan[Finding]:
    return leftovers(calls, {counts.name for counts in facts.queues}, facts.is_whole, keys)
