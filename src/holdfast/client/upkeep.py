"""What those who look after an installation ask for: rules for queues, settings, and the audit log; in both colours."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast.client.colours import AsyncHandle, SyncHandle, Verb
from holdfast.codecs import decode, encode_data
from holdfast.commands import Command
from holdfast.commands.admin import Sweep
from holdfast.commands.base import then
from holdfast.commands.tallies import Tick
from holdfast.commands.upkeep import (
    Audit,
    AuditLine,
    AuditList,
    IdentifiersSet,
    Patterns,
    PrioritiesSet,
    SettingSet,
    SettingsGet,
    Watch,
)
from holdfast.errors import UsageError
from holdfast.settings import MAX_WHOLE, check_list, check_milliseconds, check_name, check_text, check_whole

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
            {
                check_name("identifier", name): _text(_patterns(given))
                for name, given in _named(mapping).items()
            }
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
                for rule in map(_checked, check_list("rules", rules))
            ]
        )


def _named(mapping: object) -> Mapping[Any, Any]:
    if not isinstance(mapping, Mapping):
        raise UsageError(f"identifiers are a mapping of names to lists of patterns, not {mapping!r:.80}")
    named: Mapping[Any, Any] = cast("Any", mapping)
    return named


def _checked(rule: object) -> QueuePriorityPattern:
    if not isinstance(rule, QueuePriorityPattern):
        raise UsageError(f"rules are QueuePriorityPatterns, not {rule!r:.80}")
    return rule


def _patterns(given: object) -> list[str]:
    return [check_name("pattern", pattern) for pattern in check_list("patterns", given)]


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
        names = check_name("who", who) if who else self._client.worker_name, check_name("what", what)
        return Audit(*names, check_name("target", target) if target else "", check_text("detail", detail))

    @Verb
    def newest(self, count: int = 25, before: str = "") -> Command[list[AuditLine]]:
        """Up to 128 lines, newest first; `before`: only those older than the line of this id.

        Core: nouns/audit.lua.
        """
        return AuditList(
            check_name("before", before) if before else "", check_whole("count", count, 0, MOST_LINES)
        )


class UpkeepVerbs:
    """Settings that are no configuration keys, and chores that calls do by themselves as they come along."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Verb
    def settings(self) -> Command[dict[str, int]]:
        """`stats-days` (statistics are kept so long), `keep-data` (1: what attempts began with is kept where it changed)
        and `max-history-bytes` (of a job). Core: nouns/settings.lua.
        """
        return SettingsGet()

    @Verb
    def set(self, name: str, value: int | None) -> Command[int]:
        """Write one of them; None for its default. Raises Refused for a value out of bounds. Core: nouns/settings.lua."""
        number = None if value is None else check_whole("value", value, 0, MAX_WHOLE)
        return SettingSet(check_name("name", name), number)

    @Verb
    def sweep(self) -> Command[int]:
        """Drop completed jobs that are too old, as later completions would; answers how many this call dropped.

        Core: verbs/configure.lua.
        """
        return Sweep()

    @Verb
    def tick(self, *queues: str) -> Command[int]:
        """Note the minute of up to 128 queues, which otherwise pops do; answers how many. Core: verbs/minutes.lua."""
        if not 1 <= len(queues) <= MOST_LINES:
            raise UsageError(f"tick takes 1 to {MOST_LINES} queues in one call, not {len(queues)}")
        return Tick([check_name("queue", str(queue)) for queue in queues])

    @Verb
    def watch(self, seconds: float = 10) -> Command[float]:
        """Have changes published on `<root>e:c` for so many seconds, a minute at most; answers until when, as epoch seconds.

        A message names what changed: `queues`, `queue:<name>`, `job:<jid>`, `failed`, … Core: verbs/watch.lua.
        """
        return then(
            Watch(check_milliseconds("seconds", seconds, 0.001, 60)), lambda until_ms: until_ms / 1000
        )


class QueuePatterns(QueuePatternsVerbs, SyncHandle):
    """The patterns of a blocking client."""


class AsyncQueuePatterns(QueuePatternsVerbs, AsyncHandle):
    """The patterns of an async client."""


class Upkeep(UpkeepVerbs, SyncHandle):
    """The upkeep of a blocking client."""


class AsyncUpkeep(UpkeepVerbs, AsyncHandle):
    """The upkeep of an async client."""


class AuditLog(AuditVerbs, SyncHandle):
    """The audit log of a blocking client."""


class AsyncAuditLog(AuditVerbs, AsyncHandle):
    """The audit log of an async client."""
