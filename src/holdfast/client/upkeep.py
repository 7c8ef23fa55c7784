"""What those who look after an installation ask for: rules for queues, and the audit log; in both colours."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.client.colours import AsyncHandle, SyncHandle, Verb
from holdfast.codecs import decode, encode_data
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.upkeep import Audit, AuditLine, AuditList, IdentifiersSet, Patterns, PrioritiesSet
from holdfast.errors import UsageError
from holdfast.settings import check_name, check_text, check_whole

MOST_LINES = 128


class QueuePriorityPattern(msgspec.Struct, frozen=True):
    """One rule of the order of queues: patterns, and whether the queues they match take turns."""

    patterns: list[str]
    should_distribute_fairly: bool = False


class QueuePatternsVerbs:
    """The rules by which workers choose queues; the store keeps them, the workers read them."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Verb
    def get_queue_identifier_patterns(self) -> Command[dict[str, list[str]]]:
        """What each identifier stands for: a list of patterns. `default` is always there.

        Core: nouns/patterns.lua.
        """
        return then(Patterns(), lambda found: {name: decode(raw) for name, raw in found.identifiers.items()})

    @Verb
    def set_queue_identifier_patterns(self, mapping: Mapping[str, Sequence[str]]) -> Command[int]:
        """Replace all identifiers; one with an empty list is left out. Core: nouns/patterns.lua."""
        return IdentifiersSet(
            {check_name("identifier", name): _text(_patterns(given)) for name, given in mapping.items()}
        )

    @Verb
    def get_queue_priority_patterns(self) -> Command[list[QueuePriorityPattern]]:
        """The rules of the order of queues, first to last. Core: nouns/patterns.lua."""
        return then(Patterns(), lambda found: [_rule(raw) for raw in found.priorities])

    @Verb
    def set_queue_priority_patterns(self, rules: Sequence[QueuePriorityPattern]) -> Command[int]:
        """Replace all rules; one for `default`, not fair, is added if there is none. Core: nouns/patterns.lua."""
        return PrioritiesSet(
            [
                _text({"pattern": _patterns(rule.patterns), "fairly": rule.should_distribute_fairly})
                for rule in rules
            ]
        )


def _patterns(given: Sequence[str]) -> list[str]:
    if isinstance(given, str):
        raise UsageError(f"patterns are a list of texts, not {given!r}")
    return [check_name("pattern", pattern) for pattern in given]


def _text(value: object) -> str:
    return encode_data(value).decode()


def _rule(raw: str) -> QueuePriorityPattern:
    rule = decode(raw)
    return QueuePriorityPattern(list(rule.get("pattern", [])), bool(rule.get("fairly", False)))


class AuditVerbs:
    """Who did what to what: the newest ten thousand lines or a few more."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Verb
    def add(self, what: str, target: str = "", detail: str = "", who: str = "") -> Command[str]:
        """Write a line; answers its id. `detail` has up to 4096 bytes. Core: nouns/audit.lua."""
        names = who or self._client.worker_name, check_name("what", what)
        return Audit(*names, target and check_name("target", target), check_text("detail", detail))

    @Verb
    def newest(self, count: int = 25, before: str = "") -> Command[list[AuditLine]]:
        """Up to 128 lines, newest first; `before`: only those older than the line of this id.

        Core: nouns/audit.lua.
        """
        return AuditList(before, check_whole("count", count, 0, MOST_LINES))


class QueuePatterns(QueuePatternsVerbs, SyncHandle):
    """The patterns of a blocking client."""


class AsyncQueuePatterns(QueuePatternsVerbs, AsyncHandle):
    """The patterns of an async client."""


class AuditLog(AuditVerbs, SyncHandle):
    """The audit log of a blocking client."""


class AsyncAuditLog(AuditVerbs, AsyncHandle):
    """The audit log of an async client."""
