"""Recurring jobs, topics, tags, settings, the audit log and operations of a namespace, as operators look at them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from holdfast.client.plans import all_counts
from holdfast.client.recurring import declared_templates
from holdfast.commands.admin import AuditLine, AuditList, ConfigGet, PatternFacts, Patterns, SettingsGet
from holdfast.commands.attributes import Tags
from holdfast.commands.operations import OperationGet, Operations
from holdfast.commands.recurring import RecurGet, RecurringFacts
from holdfast.commands.topics import CountTopics, TopicCounts
from holdfast.commands.views import Cursor, ListSet
from holdfast.console.filters import glob
from holdfast.console.health.snooze import KEY
from holdfast.console.operations.operations import Operation, operation_of
from holdfast.console.read.queries import Page, checked_limit
from holdfast.errors import UsageError, refusal
from holdfast.settings import check_name, check_whole
from holdfast.wire.plans import Plan, Planner

# Recurring jobs, topics, tags.


class SettingsPlace(msgspec.Struct, frozen=True):
    """Where a list over many queues continues: the queue under way, and the last entry seen of it."""

    queue: str = ""
    after: Cursor | None = None

    def __str__(self) -> str:
        return msgspec.json.encode([self.queue, *(self.after or ())]).decode() if self.queue else ""

    @classmethod
    def parse(cls, text: str) -> "SettingsPlace":
        """Read a cursor. Raises UsageError."""
        try:
            words = msgspec.json.decode(text.encode(), type=list[str]) if text else [""]
        except (msgspec.MsgspecError, UnicodeEncodeError):
            words = []
        if len(words) not in (1, 3):
            raise UsageError(f"a cursor is what the page before returned, not {text!r:.80}")
        return cls(words[0], (words[1], words[2]) if len(words) == 3 else None)


def vanished_recurring(ask: Planner, module: str) -> Plan[list[RecurringFacts]]:
    """Return the recurring jobs that code declared, in `module` if it is given, and declares no more."""
    found = yield from declared_templates(ask)
    return [
        one
        for one in found
        if one.declared and one.declared.vanished_ms and module in ("", one.declared.module)
    ]


def recurring(ask: Planner, pattern: str, after: str, limit: int) -> Plan[Page[RecurringFacts]]:
    """Return a page of the recurring jobs of the queues that match a glob, by queue, the next due one first."""
    size, place, matches = checked_limit(limit), SettingsPlace.parse(after), glob(pattern)
    counts = yield from all_counts(ask)
    names = sorted(one.name for one in counts if one.recurring and matches(one.name))
    total = sum(one.recurring for one in counts if matches(one.name))
    found: list[RecurringFacts] = []
    for name in names:
        if name < place.queue:
            continue
        start = place.after if name == place.queue else None
        page = yield from ask(ListSet("recurring", name, start, size - len(found)))
        templates = (yield from ask(RecurGet(page.names))) if page.names else []
        found += [one for one in templates if one is not None]
        if page.next is not None or len(found) >= size:
            last = page.next or (page.entries[-1].score, page.entries[-1].member)
            more = page.next is not None or name != names[-1]
            return Page(tuple(found), str(SettingsPlace(name, last)) if more else "", total)
    return Page(tuple(found), "", total)


def topics(ask: Planner, after: str, limit: int) -> Plan[Page[TopicCounts]]:
    """Return a page of topics in order of first use."""
    size, place = min(checked_limit(limit), 128), SettingsPlace.parse(after)
    page = yield from ask(ListSet("topics", "", place.after, size))
    rows = (yield from ask(CountTopics(page.names))) if page.names else []
    return Page(tuple(rows), str(SettingsPlace("topics", page.next)) if page.next else "")


def tags(ask: Planner, after: str, limit: int) -> Plan[Page[tuple[str, int]]]:
    """Return a page of tags with how many jobs have each, most used first."""
    size = checked_limit(limit)
    first = check_whole("cursor", int(after or 0) if (after or "0").isdecimal() else after, 0, 1 << 40)
    found = yield from ask(Tags(1, first, size))
    rows = tuple(found.items())
    return Page(rows, str(first + size) if len(rows) == size else "")


# The installation.


class Setting(msgspec.Struct, frozen=True):
    """A setting of the namespace: its value, its default, its unit and its meaning. `is_set`: it differs from the default."""

    name: str
    value: str
    default: str
    unit: str
    meaning: str
    is_set: bool


class NamespaceSettings(msgspec.Struct, frozen=True):
    """The settings of the namespace, those that users defined, and the patterns and priorities of queues."""

    known: tuple[Setting, ...]
    others: Mapping[str, str]
    patterns: PatternFacts

    def lease_of(self, queue: str) -> float:
        """Return the length of a lease in seconds: that of the queue, or of the namespace; 0 for a value that is not a number."""
        values = {**{one.name: one.value for one in self.known}, **self.others}
        try:
            return float(values.get(f"{queue}-heartbeat") or values["heartbeat"])
        except ValueError:
            return 0.0


_SETTINGS: Final[Mapping[str, tuple[str, str, str]]] = {
    "heartbeat": (
        "30",
        "seconds",
        "length of a lease, renewed after a third of it; <queue>-heartbeat for one queue",
    ),
    "grace-period": (
        "5",
        "seconds",
        "time after the end of a lease before the job is handed out again",
    ),
    "jobs-history": ("604800", "seconds", "age at which completed jobs are deleted"),
    "jobs-history-count": ("50000", "jobs", "maximum number of completed jobs kept"),
    "max-job-history": ("100", "lines", "maximum number of history entries of a job; 0: no limit"),
    "max-pop-retry": ("1", "jobs", "kept for older programs; no effect"),
    "max-worker-age": (
        "86400",
        "seconds",
        "time without a heartbeat after which a worker is removed from lists",
    ),
    "application": ("holdfast", "", "name shown in notices and pages"),
    "unknown-for": (
        "600",
        "seconds",
        "time a job waits for a worker that has its code before it fails",
    ),
    "stats-days": ("400", "days", "age at which statistics are deleted"),
    "keep-data": ("0", "0 or 1", "1: data changed by an attempt is kept with the attempt"),
    "max-history-bytes": ("262144", "bytes", "maximum size of the history of a job"),
    "max-queues": ("1000000", "queues", "maximum number of queues"),
    "max-data": ("1048576", "bytes", "maximum size of the data of a job"),
}
"""The settings of a namespace: default, unit and meaning."""


def settings(ask: Planner) -> Plan[NamespaceSettings]:
    """Return every setting with its meaning, those that users defined, and the patterns of queues."""
    stored = yield from ask(ConfigGet())
    inner = yield from ask(SettingsGet())
    patterns = yield from ask(Patterns())
    values = {name: value for name, value in stored.items() if value is not None}
    values |= {name: str(value) for name, value in inner.items()}
    known = [
        Setting(name, values.get(name, default), default, unit, meaning, values.get(name, default) != default)
        for name, (default, unit, meaning) in _SETTINGS.items()
    ]
    others = {name: value for name, value in sorted(values.items()) if name not in _SETTINGS and name != KEY}
    return NamespaceSettings(tuple(known), others, patterns)


def audit(ask: Planner, before: str, limit: int) -> Plan[Page[AuditLine]]:
    """Return a page of the audit log, newest first."""
    size = min(checked_limit(limit), 128)
    rows = yield from ask(AuditList(before, size))
    return Page(tuple(rows), rows[-1].id if len(rows) == size else "")


def operations(ask: Planner, offset: int, limit: int, now_ms: int) -> Plan[list[Operation]]:
    """Return the operations on many jobs, the newest first."""
    rows = yield from ask(Operations(offset, min(checked_limit(limit), 64)))
    return [operation_of(facts, now_ms) for facts in rows]


def operation(ask: Planner, id: str, now_ms: int) -> Plan[Operation]:
    """Return one operation with its first refusals. Raises OperationNotFound."""
    detail = yield from ask(OperationGet(check_name("operation", id)))
    if detail is None:
        raise refusal(f"HF_OPERATION_NOT_FOUND {id}")
    return operation_of(detail.facts, now_ms, detail)
