"""Moments that explain a chart: a new version of the workers, a pause."""

from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast.commands.admin import AuditLine, AuditList
from holdfast.commands.views import ListSet
from holdfast.wire.plans import Plan, Planner

_MOST: Final = 8
_LINES: Final = 128
"""Lines of the audit log that are looked at for pauses, the newest ones."""
_WORDS: Final = {"pause": "paused", "resume": "resumed"}


class Mark(msgspec.Struct, frozen=True):
    """What happened at a moment: `version 0.2.0`, `paused`."""

    when_ms: int
    text: str


def marks(ask: Planner, since_ms: int, until_ms: int, queue: str) -> Plan[tuple[Mark, ...]]:
    """Return the moments of a period, the oldest first, at most eight: new versions of workers, and pauses of a queue."""
    page = yield from ask(ListSet("versions", "", None, _MOST + 1))
    versions = [Mark(round(float(one.score)), f"version {one.member}") for one in page.entries]
    found = versions[:-1] if len(versions) <= _MOST else versions  # the first version of all is not a change
    if queue:
        found += [mark for line in (yield from ask(AuditList("", _LINES))) for mark in _pauses(line, queue)]
    inside = [one for one in found if since_ms <= one.when_ms <= until_ms]
    return tuple(sorted(inside, key=lambda one: one.when_ms)[-_MOST:])


def _pauses(line: AuditLine, queue: str) -> Iterator[Mark]:
    if line.what in _WORDS and queue in line.target.split(", "):
        yield Mark(line.when_ms, _WORDS[line.what])
