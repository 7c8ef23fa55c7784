"""The settings kept in the store, as a mapping, for both clients."""

import logging
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from difflib import get_close_matches
from math import isfinite
from typing import Any, Final, cast

from holdfast.client.descriptors import (
    AsyncMethods,
    ClientPart,
    CommandMethod,
    CommandProperty,
    PlanMethod,
    SyncMethods,
)
from holdfast.codecs import decode
from holdfast.commands import Command
from holdfast.commands.admin import ConfigGet, ConfigSet, ConfigUnset, SettingSet, SettingsGet
from holdfast.commands.base import map_reply
from holdfast.errors import CodecError, UsageError
from holdfast.settings import check_name, check_text
from holdfast.wire.plans import Plan, Planner

Settings = Mapping[str, object] | Iterable[tuple[str, object]]
KNOWN: Final[Mapping[str, tuple[int, bool]]] = {
    "heartbeat": (0, False),
    "grace-period": (0, False),
    "jobs-history": (0, False),
    "jobs-history-count": (0, True),
    "max-job-history": (0, True),
    "max-pop-retry": (0, True),
    "max-worker-age": (0, False),
}
"""Settings that are numbers: the least, and whether it is a whole number."""
OF_THE_ROOT: Final[Mapping[str, tuple[int, int]]] = {
    "unknown-for": (0, 2_592_000),
    "stats-days": (1, 3660),
    "keep-data": (0, 1),
    "max-history-bytes": (1024, 16_777_216),
    "max-queues": (1, 1_000_000_000),
    "max-data": (1024, 67_108_864),
}
"""Settings that `all` does not list, for older programs: least and most. See `client.upkeep`."""
POSITIVE: Final = frozenset({"heartbeat", "max-worker-age"})
OF_A_QUEUE: Final = ("heartbeat", "max-pop-retry")
"""Settings that may be set for one queue: `mail-heartbeat`."""

log = logging.getLogger("holdfast")

_NONE: Final[tuple[tuple[str, object], ...]] = ()


class ConfigVerbs(ClientPart):
    """The methods of the settings. Unknown keys are kept and listed too."""

    @CommandProperty
    def all(self) -> Command[dict[str, str]]:
        """Every setting with its raw text, defaults included. Core: verbs/configure.lua."""
        return map_reply(
            ConfigGet(), lambda found: {key: raw for key, raw in found.items() if raw is not None}
        )

    @CommandMethod
    def get(self, key: str, default: object = None) -> Command[Any]:
        """The value decoded from JSON (`"60"` is 60), or as text if it is not JSON; `default` for a key without a value
        and a default of its own. Core: verbs/configure.lua.
        """
        check_name("key", key)
        if key in OF_THE_ROOT:
            return map_reply(SettingsGet(), lambda found: found.get(key, default))
        return map_reply(ConfigGet((key,)), lambda found: _value_of(found.get(key), default))

    @CommandMethod
    def set(self, key: str, value: object) -> Command[bool]:
        """Set one setting, as text. An unknown name is kept; if it resembles a known one, a warning is logged.

        Raises UsageError for a value that is neither text nor number, or that a known setting cannot have.

        Core: verbs/configure.lua.
        """
        return set_command(key, value)

    @CommandMethod
    def unset(self, key: str) -> Command[bool]:
        """Remove the value of one setting; return whether it was set. Core: verbs/configure.lua."""
        return unset_command(key)

    @PlanMethod
    def pop(self, ask: Planner, key: str, default: object = None) -> Plan[Any]:
        """Remove the value of one setting; return it decoded, or `default`. Core: verbs/configure.lua."""
        value = _value_of((yield from ask(ConfigGet((check_name("key", key),)))).get(key), default)
        yield from ask(unset_command(key))
        return value

    @PlanMethod
    def setdefault(self, ask: Planner, key: str, default: object = None) -> Plan[Any]:
        """Return the decoded value; if there is none, set and return `default`. Core: verbs/configure.lua."""
        value = _value_of((yield from ask(ConfigGet((check_name("key", key),)))).get(key), None)
        if value is not None or default is None:
            return value
        yield from ask(set_command(key, default))
        return default

    @PlanMethod
    def update(self, ask: Planner, settings: Settings = _NONE, /, **more: object) -> Plan[None]:
        """Set several settings, from a mapping, pairs, or by name; all are checked before the first is set.

        Core: verbs/configure.lua.
        """
        for command in [set_command(key, value) for key, value in (_pairs(settings) | more).items()]:
            yield from ask(command)

    @PlanMethod
    def clear(self, ask: Planner, key: str | None = None) -> Plan[None]:
        """Remove the value of one setting, or of all. Core: verbs/configure.lua."""
        for name in [key] if key is not None else list((yield from ask(ConfigGet()))):
            yield from ask(unset_command(name))


class Config(ConfigVerbs, SyncMethods, MutableMapping[str, Any]):  # type: ignore[misc]
    """The settings of a namespace as a mapping; every access is a call.

    `config[key]` is the decoded value, None without one; `in`, `len`, `keys`, `values` and `items` use `all`:
    raw text, defaults included. Core: verbs/configure.lua.
    """

    def __getitem__(self, key: str) -> Any:
        return self.get(key)

    def __setitem__(self, key: str, value: object) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        self.unset(key)

    def __contains__(self, key: object) -> bool:
        return key in self.all

    def __iter__(self) -> Iterator[str]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def values(self) -> ValuesView[str]:
        """The raw texts of all settings."""
        return self.all.values()

    def items(self) -> ItemsView[str, str]:
        """All settings with their raw texts."""
        return self.all.items()


class AsyncConfig(ConfigVerbs, AsyncMethods):
    """The settings of a namespace, awaited: `await config.get("heartbeat")`, `await config.all`."""


def set_command(key: str, value: object, seen: str | None = None) -> Command[bool]:
    """Return the command that writes a setting, if it has the value that was `seen`, checked. Raises UsageError."""
    text = _text_of(value)
    _check(check_name("key", key), text)
    if key in OF_THE_ROOT:
        return map_reply(SettingSet(key, int(float(text)), _whole_seen(seen)), bool)
    return ConfigSet(key, text, seen)


def _whole_seen(seen: str | None) -> int | None:
    if seen is None or seen.isdecimal():
        return None if seen is None else int(seen)
    raise UsageError(f"seen: expected a whole number, got {seen!r:.80}")


def _check(key: str, text: str) -> None:
    """Raise UsageError for a value that a known setting cannot have; warn of a name that resembles a known one."""
    if key in OF_THE_ROOT:
        least, most = OF_THE_ROOT[key]
        number = _number_of(text)
        if number is None or number % 1 or not least <= number <= most:
            raise UsageError(
                f"setting {key}: expected a whole number from {least} to {most}, got {text!r:.80}"
            )
        return
    name = next((name for name in OF_A_QUEUE if key.endswith("-" + name)), key)
    if name in KNOWN:
        least, whole = KNOWN[name]
        number = _number_of(text)
        if number is None or number < least or (number == 0 and name in POSITIVE) or (whole and number % 1):
            kind = "a whole number" if whole else "a number"
            above = "greater than 0" if name in POSITIVE else f"of at least {least}"
            raise UsageError(f"setting {key}: expected {kind} {above}, got {text!r:.80}")
    elif key != "application" and (
        near := get_close_matches(key, [*KNOWN, *OF_THE_ROOT, "application"], 1, 0.8)
    ):
        log.warning("setting %r is not known and is kept as it is; did you mean %r?", key, near[0])


def _number_of(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def setting_command(key: str, value: object, seen: str | None = None) -> Command[bool]:
    """Return the command that writes a setting, or with None removes its value. Raises UsageError."""
    return unset_command(key, seen) if value is None else set_command(key, value, seen)


def unset_command(key: str, seen: str | None = None) -> Command[bool]:
    """Return the command that removes the value of a setting, if it has the one that was `seen`."""
    if key in OF_THE_ROOT:
        return map_reply(SettingSet(key, None, _whole_seen(seen)), bool)
    return ConfigUnset(check_name("key", key), seen)


def _pairs(settings: Settings) -> dict[Any, object]:
    try:
        return dict(cast("Any", settings))
    except (TypeError, ValueError) as error:
        raise UsageError(f"settings must be a mapping or pairs, not {settings!r:.80}") from error


def _value_of(raw: str | None, default: object) -> object:
    if raw is None:
        return default
    try:
        return decode(raw)
    except CodecError:
        return raw


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, str):
        return check_text("value", value)
    if isinstance(value, (int, float)) and isfinite(value):
        return str(value)
    raise UsageError(f"value must be text or a finite number, not {value!r:.80}")
