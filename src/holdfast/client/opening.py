"""What both clients do when they are made: settle the options, and choose the store."""

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

import msgspec

from holdfast.errors import UsageError
from holdfast.settings import Durability, Settings, default_worker_name, unknown_option
from holdfast.wire.durability import FlushWatch
from holdfast.wire.shards import Shard, Shards

log = logging.getLogger("holdfast")


class ClientOptions(TypedDict, total=False):
    """Options of a client: `namespace`, `hostname` (the worker name), `durability` (`memory`, `process`, `fsync`),
    `timeout` of one try and `deadline` of a call in seconds, `max_data` in bytes, `load_core`,
    `trust_store`, `strict_loop`; `Settings` says what they mean."""

    namespace: str
    hostname: str | None
    durability: Durability | None
    timeout: float
    deadline: float
    max_data: int
    load_core: bool
    trust_store: bool
    strict_loop: bool


_KNOWN: Final = tuple(ClientOptions.__annotations__)
_UNSET: Final = "redis://localhost"


class Opening(msgspec.Struct, frozen=True):
    """Settled options; `where` finds the address of an embedded store, None when a URL was given."""

    settings: Settings
    where: Callable[[], str] | None

    def shard(self) -> Shard:
        """The shard of the namespace; the flushes of an embedded store are timed at first."""
        [shard] = Shards(self.settings).all
        if self.where is not None and self.settings.durability == "fsync":
            shard.flushes = FlushWatch(shard.clock)
        return shard


def settle(url: str | None, options: Mapping[str, Any]) -> Opening:
    """Check the options and choose the store: `url`, HOLDFAST_URL, REDIS_URL, or the embedded one.

    Nothing is connected or started yet. Raises UsageError.
    """
    for option in options:
        if option not in _KNOWN:
            raise unknown_option("a client", option, _KNOWN)
    chosen = {name: value for name, value in options.items() if value is not None}
    chosen["worker_name"] = chosen.pop("hostname", None) or default_worker_name()
    if url is not None and not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"url must be text, not {type(url).__name__}")
    found, source = _find_url(url)
    if found is None:
        chosen.setdefault("durability", "fsync")
        settings = Settings(_UNSET, **chosen).checked()
        return Opening(settings, _Embedded(settings.durability))
    settings = Settings(found, **chosen).checked()
    if url is None:
        # A URL that was given is no news.
        log.info("using the store of %s: %s", source, without_password(found))
    return Opening(settings, None)


def _find_url(url: str | None) -> tuple[str | None, str]:
    if url is not None:
        return url, "the given URL"
    for name in ("HOLDFAST_URL", "REDIS_URL"):
        value = os.environ.get(name)
        if value:
            return value, name
    return None, ""


def without_password(url: str) -> str:
    """A URL as it may be shown and logged."""
    scheme, _, rest = url.partition("://")
    credentials, at, place = rest.rpartition("@")
    return f"{scheme}://{credentials.partition(':')[0]}:…@{place}" if at else url


_said: set[str] = set()
"""The embedded stores that were named in the log: once for this program, its other clients and its children."""


class _Embedded:
    """Finds, and if need be starts, the embedded store, whenever a connection is to be opened."""

    def __init__(self, durability: Durability) -> None:
        self._durability: Durability = durability

    def __call__(self) -> str:
        from holdfast.store import ensure

        address = ensure(durability=self._durability)
        if address.url not in _said:
            log.info("using the embedded store in %s, durability %s", address.directory, self._durability)
            _said.add(address.url)
        return address.url
