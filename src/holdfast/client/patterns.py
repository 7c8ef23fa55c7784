"""`client.queue_patterns`: the rules by which workers choose queues, for both clients."""

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.client.descriptors import AsyncMethods, ClientPart, CommandMethod, SyncMethods
from holdfast.codecs import decode, encode_data
from holdfast.commands import Command
from holdfast.commands.admin import IdentifiersSet, Patterns, PrioritiesSet
from holdfast.commands.base import map_reply
from holdfast.errors import UsageError
from holdfast.settings import check_list, check_name, check_switch


class QueuePriorityPattern(msgspec.Struct, frozen=True):
    """One rule of the order of queues: patterns, and whether the queues that they match take turns.

    `["default"]` matches the queues that no other rule matches.
    """

    patterns: list[str]
    should_distribute_fairly: bool = False

    @property
    def pattern(self) -> list[str]:
        """`patterns`, under the name that older programs use."""
        return self.patterns


class QueuePatternsVerbs(ClientPart):
    """The rules by which workers choose queues; the store keeps them, the workers read them."""

    @CommandMethod
    def get_queue_identifier_patterns(self) -> Command[dict[str, list[str]]]:
        """The patterns of each identifier. `default` is always there.

        Core: nouns/queue/patterns.lua.
        """
        return map_reply(
            Patterns(), lambda found: {name: decode(raw) for name, raw in found.identifiers.items()}
        )

    @CommandMethod
    def set_queue_identifier_patterns(self, mapping: Mapping[str, Sequence[str]]) -> Command[int]:
        """Replace all identifiers; one with an empty list is left out, and `default` is `["*"]` unless it is given.

        Workers read the patterns again within five minutes, or as they are configured. Raises UsageError.
        Core: nouns/queue/patterns.lua.
        """
        return identifiers_command(mapping)

    @CommandMethod
    def get_queue_priority_patterns(self) -> Command[list[QueuePriorityPattern]]:
        """The rules of the order of queues, first to last. Core: nouns/queue/patterns.lua."""
        return map_reply(Patterns(), lambda found: [_rule(raw) for raw in found.priorities])

    @CommandMethod
    def set_queue_priority_patterns(self, rules: Sequence[QueuePriorityPattern]) -> Command[int]:
        """Replace all rules; one for `default`, not fair, comes last if there is none. Raises UsageError.

        Core: nouns/queue/patterns.lua.
        """
        return priorities_command(rules)


def identifiers_command(mapping: Mapping[str, Sequence[str]]) -> Command[int]:
    """Return the command that replaces all identifiers, checked. Raises UsageError."""
    if not isinstance(mapping, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"identifiers are a mapping of names to lists of patterns, not {mapping!r:.80}")
    checked = {check_name("identifier", name): _text(_patterns(given)) for name, given in mapping.items()}
    return IdentifiersSet(checked)


def priorities_command(rules: Sequence[QueuePriorityPattern]) -> Command[int]:
    """Return the command that replaces all rules of the order of queues, checked. Raises UsageError."""
    return PrioritiesSet([_text(_checked(rule)) for rule in check_list("rules", rules)])


def _checked(rule: object) -> dict[str, object]:
    if not isinstance(rule, QueuePriorityPattern):
        raise UsageError(f"rules are QueuePriorityPatterns, not {rule!r:.80}")
    fairly = check_switch("should_distribute_fairly", rule.should_distribute_fairly)
    return {"pattern": _patterns(rule.patterns), "fairly": fairly}


def _patterns(given: object) -> list[str]:
    return [check_name("pattern", pattern) for pattern in check_list("patterns", given)]


def _text(value: object) -> str:
    return encode_data(value).decode()


def _rule(raw: str) -> QueuePriorityPattern:
    rule = decode(raw)
    return QueuePriorityPattern(list(rule.get("pattern", [])), bool(rule.get("fairly", False)))


class QueuePatterns(QueuePatternsVerbs, SyncMethods):
    """The patterns of a sync client."""


class AsyncQueuePatterns(QueuePatternsVerbs, AsyncMethods):
    """The patterns of an async client."""
