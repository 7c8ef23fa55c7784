"""The settings kept in the store, as a mapping; in both colours."""

from collections.abc import Awaitable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, cast

from holdfast.client.colours import AsyncHandle, SyncHandle
from holdfast.codecs import decode
from holdfast.commands import Command
from holdfast.commands.admin import ConfigGet, ConfigSet, ConfigUnset
from holdfast.commands.base import then
from holdfast.errors import CodecError, UsageError
from holdfast.settings import check_name, check_text


def _value_of(raw: str | None, default: Any) -> Any:
    """JSON decoded; text that is no JSON (such as the application's name) as it is."""
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
    if isinstance(value, (int, float)):
        return str(value)
    raise UsageError(f"a setting is text or a number, not {value!r}")


def _get(key: str, default: Any = None) -> Command[Any]:
    check_name("key", key)
    return then(ConfigGet((key,)), lambda found: _value_of(found.get(key), default))


def _set(key: str, value: object) -> Command[bool]:
    return ConfigSet(check_name("key", key), _text_of(value))


def _all() -> Command[dict[str, str]]:
    return then(ConfigGet(), lambda found: {key: raw for key, raw in found.items() if raw is not None})


class Config(SyncHandle, MutableMapping[str, Any]):
    """The settings of a namespace; every access asks the store. Core: verbs/configure.lua."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def all(self) -> dict[str, str]:
        """Every setting with its raw text, defaults included."""
        return self.run(_all())

    def __getitem__(self, key: str) -> Any:
        return self.run(_get(key))

    def __setitem__(self, key: str, value: object) -> None:
        self.run(_set(key, value))

    def __delitem__(self, key: str) -> None:
        self.run(ConfigUnset(check_name("key", key)))

    def __contains__(self, key: object) -> bool:
        return key in self.all

    def __iter__(self) -> Iterator[str]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def get(self, key: str, default: Any = None) -> Any:
        """The decoded value, or `default` when it is not set and has no default of its own."""
        return self.run(_get(key, default))

    def pop(self, key: str, default: Any = None) -> Any:
        """The decoded value or `default`; then the setting is back at its own default."""
        value = self.get(key, default)
        del self[key]
        return value

    def clear(self, key: str | None = None) -> None:
        """Return one setting, or all, to the defaults."""
        for name in [key] if key is not None else list(self.all):
            del self[name]


class AsyncConfig(AsyncHandle):
    """The settings of a namespace, awaited. Core: verbs/configure.lua."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def all(self) -> Awaitable[dict[str, str]]:
        """Every setting with its raw text, defaults included."""
        return self.run(_all())

    def get(self, key: str, default: Any = None) -> Awaitable[Any]:
        """The decoded value, or `default` when it is not set and has no default of its own."""
        return self.run(_get(key, default))

    def set(self, key: str, value: object) -> Awaitable[bool]:
        """Write one setting."""
        return self.run(_set(key, value))

    def unset(self, key: str) -> Awaitable[bool]:
        """Return one setting to its default; answers whether it was set."""
        return self.run(ConfigUnset(check_name("key", key)))

    async def update(
        self, settings: Mapping[str, object] | Iterable[tuple[str, object]] = (), /, **more: object
    ) -> None:
        """Write several settings."""
        for key, value in {**dict(cast("Any", settings)), **more}.items():
            await self.set(key, value)
