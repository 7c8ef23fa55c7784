"""What operators look at of an installation: its store, the doctor's report, and the audit log by who and what."""

import platform
from collections.abc import Mapping
from typing import Final

import msgspec

from holdfast.client.descriptors import AnyClient, PlanMethod
from holdfast.commands.admin import AuditLine, AuditList, Info
from holdfast.console.health import store_checks
from holdfast.console.health.doctor import MOST_KEYS, examine
from holdfast.console.health.findings import Calls, Finding, Report, addressed
from holdfast.console.read.queries import Page, checked_limit
from holdfast.core.library import library
from holdfast.errors import UsageError
from holdfast.models import CoreInfo
from holdfast.settings import check_text, check_whole
from holdfast.wire.plans import Plan, Planner
from holdfast.wire.shards import Shard

_PINGS: Final = 5
_PATIENCE: Final = 3.0
_LINES: Final = 128
_LOOKED: Final = 2560
"""The largest number of lines of the audit log that are read for one page of matches."""


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """The store and the namespace of a client, and what runs here. Sizes are bytes, `memory_limit` is 0 without one.

    `findings` are the quick checks of the doctor: store, persistence, eviction, memory, replication, clock, latency.
    """

    namespace: str
    root: str
    durability: str
    store: str
    mode: str
    uptime_seconds: float
    memory: float
    memory_limit: float
    core: str
    digest: str
    schema: int
    epoch: str
    own_digest: str
    heartbeat: float
    grace: float
    python: str
    platform: str
    findings: tuple[Finding, ...]


def installation(ask: Planner, shard: Shard) -> Plan[Installation]:
    """Return facts of the store and the namespace. Raises TransportError if the store does not respond."""
    core = yield from ask(Info())
    calls = Calls(shard, _PATIENCE)
    facts = yield from store_checks.store_facts(calls)
    findings = [store_checks.version(facts)]
    if facts.info:
        findings += [
            store_checks.persistence(facts),
            store_checks.eviction(facts),
            store_checks.memory(facts, shard.settings.flags),
            store_checks.replication(facts),
        ]
    findings.append((yield from store_checks.clock(calls)))
    findings.append((yield from store_checks.latency(calls, _PINGS)))
    return _of(shard, core, facts, tuple(addressed(findings, shard.settings)))


def _of(
    shard: Shard, core: CoreInfo, facts: store_checks.StoreFacts, findings: tuple[Finding, ...]
) -> Installation:
    info: Mapping[str, str] = facts.info
    valkey = info.get("valkey_version")
    return Installation(
        namespace=shard.settings.namespace,
        root=shard.root,
        durability=shard.settings.durability,
        store=f"Valkey {valkey}" if valkey else f"Redis {info.get('redis_version', 'of unknown version')}",
        mode=info.get("server_mode") or info.get("redis_mode", ""),
        uptime_seconds=facts.number("uptime_in_seconds"),
        memory=facts.number("used_memory"),
        memory_limit=facts.number("maxmemory"),
        core=core.version,
        digest=core.digest,
        schema=core.schema,
        epoch=core.epoch,
        own_digest=library().digest,
        heartbeat=core.heartbeat / 1000,
        grace=core.grace / 1000,
        python=platform.python_version(),
        platform=platform.platform(),
        findings=findings,
    )


def audit_lines(ask: Planner, before: str, limit: int, who: str, what: str) -> Plan[Page[AuditLine]]:
    """Return a page of the lines of the audit log that have these texts in who acted, and in what or its target.

    It looks at up to 2,560 lines; its cursor continues, also when none of them matches.
    """
    size = min(checked_limit(limit), _LINES)
    if before and not all(part.isdecimal() for part in before.split("-", 1)):
        raise UsageError(f"a cursor is what the page before returned, not {before!r:.80}")
    check_text("who", who)
    check_text("what", what)
    count = _LINES if who or what else size
    found: list[AuditLine] = []
    for _ in range(_LOOKED // _LINES):
        lines = yield from ask(AuditList(before, count))
        for line in lines:
            before = line.id
            if who in line.who and (what in line.what or what in line.target):
                found.append(line)
                if len(found) == size:
                    return Page(tuple(found), before)
        if len(lines) < count:
            return Page(tuple(found))
    return Page(tuple(found), before)


class InstallationVerbs:
    """The queries of operators on an installation."""

    _client: AnyClient

    @PlanMethod
    def installation(self, ask: Planner) -> Plan[Installation]:
        """Facts of the store and the namespace, with the quick checks of the doctor."""
        return installation(ask, self._client.shard)

    @PlanMethod
    def doctor(self, ask: Planner, *, seconds: float = _PATIENCE, keys: int = MOST_KEYS) -> Plan[Report]:
        """All checks of the doctor; leftovers are looked for among `keys` keys. Raises TransportError."""
        del ask
        return examine(self._client.shard, seconds, check_whole("keys", keys, 0, 1 << 40))

    @PlanMethod
    def audit_lines(
        self, ask: Planner, *, before: str = "", limit: int = 25, who: str = "", what: str = ""
    ) -> Plan[Page[AuditLine]]:
        """A page of the audit log, newest first, of the lines with these texts in who acted, and in what or its target."""
        return audit_lines(ask, before, limit, who, what)
