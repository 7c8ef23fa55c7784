"""The doctor: checks of a store and a namespace, each a sentence with what to do.

`client.runner.run(examine(client.shard))` runs it with either client. It changes nothing, loads no core, and each of its calls
is small, so it may run on a store in trouble. What its user may not look at is a finding that says so.
"""

from collections.abc import Sequence
from typing import Final, cast

from holdfast.commands.admin import Info
from holdfast.console.health import store_checks
from holdfast.console.health.findings import Calls, Finding, NotChecked, Report, addressed, refusal_text
from holdfast.console.health.job_checks import CHECKS, DoctorFacts, namespace_facts
from holdfast.console.health.leftovers import leftovers
from holdfast.core.library import library, shown_core
from holdfast.models import CoreInfo, text
from holdfast.wire.meeting import READS, WRITES, release_of
from holdfast.wire.plans import ErrorReply, Plan
from holdfast.wire.shards import Shard

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
        return [Finding("rights", "note", "The user of this URL may only read.")]
    text_ = f"The user of this URL may not run {', '.join(found.denied)}: clients refuse to start."
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
        return Finding("core", "ok", f"{shown}, the one of this program.")
    text_ = f"{shown}; this program has {shown_core(ours.version, ours.digest)}."
    if release_of(found.version) < release_of(ours.version):
        return Finding("core", "warn", text_, f"the next client of this release loads its core; or {_LOAD}")
    if release_of(found.version) > release_of(ours.version):
        return Finding("core", "note", text_, "upgrade this program")
    return Finding("core", "warn", text_, "use programs of one build, or give them stores of their own")


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
