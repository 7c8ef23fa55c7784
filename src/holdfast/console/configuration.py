"""Change settings, queue patterns and queue priorities, unless somebody else did since they were shown."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from holdfast.client.config import setting_command
from holdfast.client.descriptors import AnyClient, PlanMethod
from holdfast.client.patterns import QueuePriorityPattern, identifiers_command, priorities_command
from holdfast.client.queue_names import REST, divide_by_rules, resolve_queue_names
from holdfast.commands.admin import PatternFacts, Patterns
from holdfast.commands.queues import QueueNames
from holdfast.console.read.fleet import rules_of
from holdfast.console.read.namespace_queries import NamespaceSettings, settings
from holdfast.console.read.queries import identifiers_of
from holdfast.errors import UsageError, WrongState
from holdfast.settings import check_name
from holdfast.wire.plans import Plan, Planner


class SettingChange(msgspec.Struct, frozen=True):
    """A new value of a setting, None for its default. `seen` is the value that it was made of, "" for a setting without one."""

    name: str
    value: str | None
    seen: str | None = None


class SettingChanged(msgspec.Struct, frozen=True):
    """A setting that was changed: from which value to which one; `was_set`: it had one of its own before."""

    name: str
    before: str
    after: str
    was_set: bool


class PatternRow(msgspec.Struct, frozen=True):
    """An identifier with its patterns, and the queues that they match now."""

    name: str
    patterns: tuple[str, ...]
    queues: tuple[str, ...]


class RuleRow(msgspec.Struct, frozen=True):
    """A rule of the order of queues: its patterns, whether its queues take turns, and those that it takes now."""

    patterns: tuple[str, ...]
    is_fair: bool
    queues: tuple[str, ...]


class QueueOrder(msgspec.Struct, frozen=True):
    """The patterns and priorities of queues, with the queues that they match. The versions name these values, for a change of them."""

    identifiers: tuple[PatternRow, ...]
    rules: tuple[RuleRow, ...]
    identifiers_version: str
    rules_version: str


# Settings.


class BadSettings(UsageError):
    """Some settings cannot have the values that were given; `fields` has a sentence about each, by name."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(fields.values()))
        self.fields = fields


class ChangedSettings(WrongState):
    """Some settings have other values than those that were seen; `fields` has a sentence about each, by name."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(fields.values()), "HF_WRONG_STATE")
        self.fields = fields


def changes_of(found: NamespaceSettings, changes: Sequence[SettingChange]) -> list[SettingChanged]:
    """Return what changes would change, checked. Raises BadSettings, and ChangedSettings if a value is not the one that was seen."""
    values = {one.name: (one.value, one.default, one.is_set) for one in found.known}
    values |= {name: (value, "", True) for name, value in found.others.items()}
    if len({one.name for one in changes}) < len(changes):
        raise UsageError("a setting is named twice")
    _check_changes(changes, {name: value for name, (value, _, _) in values.items()})
    result: list[SettingChanged] = []
    for one in changes:
        value, default, was_set = values.get(one.name, ("", "", False))
        after = default if one.value is None else one.value
        if after != value or (one.value is None and was_set):
            result.append(SettingChanged(one.name, value, after, was_set))
    return result


def _check_changes(changes: Sequence[SettingChange], values: Mapping[str, str]) -> None:
    bad: dict[str, str] = {}
    changed: dict[str, str] = {}
    for one in changes:
        value = values.get(check_name("setting", one.name), "")
        try:
            setting_command(one.name, one.value)
        except UsageError as error:
            bad[one.name] = str(error)
        if one.seen is not None and one.seen != value:
            changed[one.name] = (
                f"setting {one.name} was changed meanwhile: it is {value!r:.200} now, not {one.seen!r:.200}"
            )
    if bad:
        raise BadSettings(bad)
    if changed:
        raise ChangedSettings(changed)


def change_settings(ask: Planner, changes: Sequence[SettingChange]) -> Plan[list[SettingChanged]]:
    """Write settings that have the values that were seen. All are checked before the first is written.

    Each is written only if it still has the value with which it was checked: another change of this moment is not lost.
    """
    found = changes_of((yield from settings(ask)), changes)
    values = {one.name: one.value for one in changes}
    for one in found:
        try:
            yield from ask(setting_command(one.name, values[one.name], one.before))
        except WrongState as error:
            raise ChangedSettings({one.name: str(error)}) from None
    return found


# Patterns and priorities of queues.


def version_of(value: object) -> str:
    """Return a short name of a value, for a comparison."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


def queue_order(ask: Planner) -> Plan[QueueOrder]:
    """Return the patterns and priorities of queues with the queues that they match now; `default` comes last."""
    facts = yield from ask(Patterns())
    known = sorted((yield from ask(QueueNames())))
    identifiers = identifiers_of(facts)
    rows = [
        PatternRow(name, patterns, tuple(resolve_queue_names(identifiers, known, patterns)))
        for name, patterns in sorted(identifiers.items(), key=lambda one: (one[0] == REST, one[0]))
    ]
    return QueueOrder(
        tuple(rows), _rule_rows(facts, known), version_of(facts.identifiers), version_of(facts.priorities)
    )


def _rule_rows(facts: PatternFacts, known: Sequence[str]) -> tuple[RuleRow, ...]:
    parts = divide_by_rules(known, rules_of(facts))
    return tuple(
        RuleRow(tuple(rule.patterns), rule.should_distribute_fairly, tuple(queues)) for rule, queues in parts
    )


def _check_version(what: str, now: object, seen: str) -> None:
    if seen and seen != version_of(now):
        raise WrongState(
            f"the {what} were changed meanwhile, and are now {msgspec.json.encode(now).decode():.1000}; nothing was changed",
            "HF_WRONG_STATE",
        )


def set_patterns(ask: Planner, mapping: Mapping[str, Sequence[str]], seen: str) -> Plan[bool]:
    """Replace all queue patterns; one without patterns is left out. `seen` is the version of those that were shown.

    Returns whether that changed anything. Raises UsageError, WrongState.
    """
    command = identifiers_command(mapping)
    facts = yield from ask(Patterns())
    _check_version("queue patterns", facts.identifiers, seen)
    new = {name: tuple(patterns) for name, patterns in mapping.items() if patterns}
    if {REST: ("*",), **new} == identifiers_of(facts):
        return False
    yield from ask(command)
    return True


def set_priorities(ask: Planner, rules: Sequence[QueuePriorityPattern], seen: str) -> Plan[bool]:
    """Replace all rules of the order of queues. `seen` is the version of those that were shown.

    Returns whether that changed anything. Raises UsageError, WrongState.
    """
    command = priorities_command(rules)
    facts = yield from ask(Patterns())
    _check_version("queue priorities", facts.priorities, seen)
    if list(rules) == rules_of(facts):
        return False
    yield from ask(command)
    return True


class ConfigurationVerbs:
    """What operators do with settings, queue patterns and queue priorities."""

    _client: AnyClient
    actor: str

    @PlanMethod
    def change_settings(self, ask: Planner, *changes: SettingChange) -> Plan[list[SettingChanged]]:
        """Write settings, each if it has the value that was seen. Raises UsageError, and WrongState with both values.

        All are checked before the first is written.
        """
        return change_settings(ask, changes)

    @PlanMethod
    def queue_order(self, ask: Planner) -> Plan[QueueOrder]:
        """The patterns and priorities of queues, with the queues that they match now."""
        return queue_order(ask)

    @PlanMethod
    def set_patterns(
        self, ask: Planner, mapping: Mapping[str, Sequence[str]], *, seen: str = ""
    ) -> Plan[bool]:
        """Replace all queue patterns, if they are those of the version `seen`. Raises UsageError, WrongState."""
        return set_patterns(ask, mapping, seen)

    @PlanMethod
    def set_priorities(
        self, ask: Planner, rules: Sequence[QueuePriorityPattern], *, seen: str = ""
    ) -> Plan[bool]:
        """Replace all rules of the order of queues, if they are those of the version `seen`. Raises UsageError, WrongState."""
        return set_priorities(ask, rules, seen)
