"""The settings kept in the store, as a mapping; said once for both colours."""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from math import isfinite
from typing import Any, Final, cast

from holdfast.client.colours import Asked, AsyncHandle, Planned, SyncHandle, Verb
from holdfast.codecs import decode
from holdfast.commands import Command
from holdfast.commands.admin import ConfigGet, ConfigSet, ConfigUnset
from holdfast.commands.base import then
from holdfast.errors import CodecError, UsageError
from holdfast.settings import check_name, check_text
from holdfast.wire.plans import Ask, Plan

Settings = Mapping[str, object] | Iterable[tuple[str, object]]
_NONE: Final[tuple[tuple[str, object], ...]] = ()


class ConfigVerbs:
    """What can be asked of the settings, and told. Unknown keys are kept and listed too."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Asked
    def all(self) -> Command[dict[str, str]]:
        """Every setting with its raw text, defaults included. Core: verbs/configure.lua."""
        return then(ConfigGet(), lambda found: {key: raw for key, raw in found.items() if raw is not None})

    @Verb
    def get(self, key: str, default: Any = None) -> Command[Any]:
        """The value decoded from JSON (`"60"` is 60), or as text if it is none; `default` when it is not set and has no
        default of its own. Core: verbs/configure.lua.
        """
        check_name("key", key)
        return then(ConfigGet((key,)), lambda found: _value_of(found.get(key), default))

    @Verb
    def set(self, key: str, value: object) -> Command[bool]:
        """Write one setting, as text. Raises UsageError for what is neither text nor number.

        Core: verbs/configure.lua.
        """
        return _set(key, value)

    @Verb
    def unset(self, key: str) -> Command[bool]:
        """Return one setting to its default, or to none; answers whether it was set. Core: verbs/configure.lua."""
        return _unset(key)

    @Planned
    def pop(self, ask: Ask, key: str, default: Any = None) -> Plan[Any]:
        """The decoded value or `default`; then the setting is back at its own default. Core: verbs/configure.lua."""
        value = _value_of((yield from ask(ConfigGet((check_name("key", key),)))).get(key), default)
        yield from ask(_unset(key))
        return value

    @Planned
    def setdefault(self, ask: Ask, key: str, default: Any = None) -> Plan[Any]:
        """The decoded value; where there is none, `default`, which is written. Core: verbs/configure.lua."""
        value = _value_of((yield from ask(ConfigGet((check_name("key", key),)))).get(key), None)
        if value is not None or default is None:
            return value
        yield from ask(_set(key, default))
        return default

    @Planned
    def update(self, ask: Ask, settings: Settings = _NONE, /, **more: object) -> Plan[None]:
        """Write several settings, a mapping, pairs, or by name; all are checked before the first is written.

        Core: verbs/configure.lua.
        """
        for command in [_set(key, value) for key, value in (_pairs(settings) | more).items()]:
            yield from ask(command)

    @Planned
    def clear(self, ask: Ask, key: str | None = None) -> Plan[None]:
        """Return one setting, or all, to the defaults. Core: verbs/configure.lua."""
        for name in [key] if key is not None else list((yield from ask(ConfigGet()))):
            yield from ask(_unset(name))


class Config(ConfigVerbs, SyncHandle, MutableMapping[str, Any]):  # type: ignore[misc]
    """The settings of a namespace as a mapping; every access asks the store.

    `config[key]` is the decoded value, None when there is none; what goes through all settings (`in`, `len`, `keys`,
    `values`, `items`) sees them as `all` has them: raw text, defaults included. Core: verbs/configure.lua.
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


class AsyncConfig(ConfigVerbs, AsyncHandle):
    """The settings of a namespace, awaited: `await config.get("heartbeat")`, `await config.all`."""


def _set(key: str, value: object) -> Command[bool]:
    return ConfigSet(check_name("key", key), _text_of(value))


def _unset(key: str) -> Command[bool]:
    return ConfigUnset(check_name("key", key))


def _pairs(settings: Settings) -> dict[Any, object]:
    try:
        return dict(cast("Any", settings))
    except (TypeError, ValueError) as error:
        raise UsageError(f"settings must be a mapping or pairs, not {settings!r:.80}") from error


def _value_of(raw: str | None, default: Any) -> Any:
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
