"""Open a client: check its options and choose the store.

All clients are remembered while they are in use, for tests, which move them to a store of their own (`holdfast.testing`).
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from shlex import quote
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec

from holdfast.client.store_options import (
    OWN,
    PARTS,
    ClientOptions,
    place_of,
    url_of_existing,
    url_of_parts,
    url_with,
)
from holdfast.errors import UsageError
from holdfast.settings import (
    Durability,
    Settings,
    check_callable,
    default_worker_name,
    redis_cli_of,
    shown_url,
)
from holdfast.wire.address import DriverClasses, StoreTarget, check_options
from holdfast.wire.outage import gate_of
from holdfast.wire.shards import FlushWatch, Shard

T = TypeVar("T")

# By identity: clients of one place are equal.
_clients: Final[WeakValueDictionary[int, object]] = WeakValueDictionary()
on_new_client: Final[list[Callable[[Any], None]]] = []
"""Callbacks that get each new client."""


def note(client: object) -> None:
    """Remember a new client."""
    _clients[id(client)] = client
    for callback in on_new_client:
        callback(client)


on_first_function: Final[list[Callable[[Any], None]]] = []
"""Callbacks that get each client when its first function becomes a job."""


def note_function(client: Any) -> None:
    """Remember that a client has function jobs."""
    if not client.has_functions:
        client.has_functions = True
        for callback in on_first_function:
            callback(client)


def clients() -> list[Any]:
    """Return every client that is in use."""
    return list(_clients.values())


log = logging.getLogger("holdfast")

_UNSET: Final = "redis://localhost"
_REDIS_CLI: Final = 'redis-cli -s "$(holdfast store path)/socket"'
"""What reaches the embedded store."""
_NO_SETTINGS: Final = ("hostname", "on_lua_script_reload_callback", "url_origin")
_EMPTY: Final = (("username", ""), ("password", ""))
"""Parts that count as not given: how configuration writes that there is no password."""
_HIDDEN: Final = (
    "namespace", "ssl_password", "ssl_ca_data", "credential_provider", "redis_connect_func", "url_origin",
)  # fmt: skip


class Opening(msgspec.Struct, frozen=True):
    """Checked options: `settings`, and the target of connections. `options` and the URL make the same client again; `origin` is
    what named the URL.

    `on_load` is called with (`client.database`, digest) when the client loaded the core.
    """

    settings: Settings
    target: StoreTarget
    options: ClientOptions
    origin: str = ""
    on_load: Callable[[Any, str], object] | None = None

    @property
    def embedded(self) -> bool:
        """Whether the store is the embedded one."""
        return self.target.where is not None

    @property
    def place(self) -> tuple[object, ...]:
        """Server address, database and namespace: clients of the same place are equal."""
        return self.embedded, *place_of(self.settings.url), self.settings.namespace

    def shown(self) -> str:
        """Return the store as text, without secrets."""
        return "the embedded store" if self.embedded else shown_url(self.settings.url)

    def shown_with_directory(self) -> str:
        """Return the store as text, without secrets; of the embedded one the directory too, once it is known."""
        directory = getattr(self.target.where, "directory", "")
        return f"{self.shown()} in {directory}" if directory else self.shown()

    def shown_options(self) -> list[tuple[str, object]]:
        """Return the options as they were given, without secrets and those of the place."""
        return [(name, value) for name, value in self.options.items() if name not in _HIDDEN]

    def shard(self) -> Shard:
        """Return the shard of the namespace; the flushes of an embedded store are timed at first."""
        shard = Shard(self.settings)
        shard.gate = gate_of(self.settings.url)
        if self.embedded and self.settings.durability == "fsync":
            shard.flushes = FlushWatch(shard.clock)
        return shard


def settle(url: object, options: Mapping[str, object], drive: DriverClasses) -> Opening:
    """Check the options and choose the store: `url`, its parts, HOLDFAST_URL, REDIS_URL, or the embedded one.

    The namespace is `namespace`, HOLDFAST_NAMESPACE, or "default". `url` may be a client of the driver, whose connections are
    then used. Nothing is connected or started yet. Raises UsageError.
    """
    given = {name: value for name, value in options.items() if value is not None}
    own = _taken_out(given, OWN)
    if os.environ.get("HOLDFAST_NAMESPACE"):
        own.setdefault("namespace", os.environ["HOLDFAST_NAMESPACE"])
    parts = {name: value for name, value in _taken_out(given, PARTS).items() if (name, value) not in _EMPTY}
    check_options(drive, given, (*OWN, *PARTS))
    existing = _existing(url, own.pop("redis", None))
    if existing is not None:
        for option in (*parts, *given):
            raise UsageError(f"{option} cannot be given with a connection, which determines it")
    found, origin = _url(url, parts) if existing is None else _of_existing(existing)
    if url is not None or parts:
        origin = str(own.get("url_origin") or origin)
    settings = _settings(found, own, origin)
    where = _Embedded(settings.durability) if found is None else None
    kept: Any = {**own, **given}
    return Opening(settings, StoreTarget(given, where, existing), kept, origin, _callback(own))


def _taken_out(given: dict[str, T], names: Iterable[str]) -> dict[str, T]:
    return {name: given.pop(name) for name in names if name in given}


def _settings(url: str | None, own: Mapping[str, Any], origin: str) -> Settings:
    chosen = {name: value for name, value in own.items() if name not in _NO_SETTINGS}
    chosen["worker_name"] = own.get("hostname") or default_worker_name()
    if "deadline" in own:
        chosen["loop_deadline"] = own["deadline"]
    if url is None:
        chosen.setdefault("durability", "fsync")
    settings = Settings(_UNSET if url is None else url, **chosen).checked()
    reach = _REDIS_CLI if url is None else redis_cli_of(settings.url)
    store = "the embedded store" if url is None else f"the store {shown_url(url)} (URL from {origin})"
    return msgspec.structs.replace(
        settings, flags=_flags(url, settings.namespace), redis_cli=reach, store=store
    )


def _callback(own: Mapping[str, Any]) -> Callable[[Any, str], object] | None:
    found = own.get("on_lua_script_reload_callback")
    return None if found is None else check_callable("on_lua_script_reload_callback", found)


def _existing(url: object, redis: object) -> Any:
    """Return the connection that was given instead of a URL, None if there is none."""
    if url is not None and redis is not None:
        raise UsageError("url and redis both name the store: give one of them")
    found = redis if url is None or isinstance(url, str) else url
    if found is not None and not hasattr(found, "connection_pool"):
        wanted = "redis must be" if url is None else "url must be text or"
        raise UsageError(f"{wanted} a client of redis-py, not {type(found).__name__}")
    return found


def _of_existing(existing: Any) -> tuple[str | None, str]:
    return url_of_existing(existing), "the given connection"


def _url(url: Any, parts: Mapping[str, object]) -> tuple[str | None, str]:
    """Return the URL that was given, whole or in parts, or that of the environment, None for the embedded store; and its origin."""
    if url is not None:
        return url_with(url, parts), "the argument url"
    if parts:
        return url_of_parts(parts), f"the arguments {', '.join(parts)}"
    name, found = _url_of_environment()
    if found and found not in _logged:
        # Only this one is logged: the program knows a URL that it gave.
        log.info("using the store of %s: %s", name, shown_url(found))
        _logged.add(found)
    return found, name


def _url_of_environment() -> tuple[str, str | None]:
    """Return the variable that names the store, and its URL; None where no variable does."""
    for name in ("HOLDFAST_URL", "REDIS_URL"):
        if os.environ.get(name):
            return name, os.environ[name]
    return "", None


def _flags(url: str | None, namespace: str) -> str:
    """Return what a command line in this environment needs to reach this store and namespace; no password is shown."""
    flags = ""
    if url != _url_of_environment()[1]:
        flags += f" --url {quote(shown_url(url))}" if url else ""
    if namespace != (os.environ.get("HOLDFAST_NAMESPACE") or "default"):
        flags += f" --namespace {quote(namespace)}"
    return flags


_logged: set[str] = set()
"""The URLs of stores that were logged, each once for this program and its children."""


class _Embedded:
    """Finds, and if necessary starts, the embedded store, before a connection is opened."""

    def __init__(self, durability: Durability) -> None:
        self._durability: Durability = durability
        self.directory = ""

    def __call__(self) -> str:
        from holdfast.store import ensure

        address = ensure(durability=self._durability)
        self.directory = str(address.directory)
        if address.url not in _logged:
            log.info("using the embedded store in %s, durability %s", address.directory, self._durability)
            _logged.add(address.url)
        return address.url


class StoreSource(Protocol):
    """The attributes of a client that listening uses."""

    @property
    def settings(self) -> Settings: ...
    @property
    def shard(self) -> Shard: ...
    @property
    def link(self) -> Any: ...


class Driven(msgspec.Struct, frozen=True):
    """A Source made of a client of the driver: its address is used, never its connections."""

    opening: Opening
    shard: Shard
    link: Any

    @property
    def settings(self) -> Settings:
        return self.opening.settings


def source_of(database: Any, *, awaited: bool, namespace: str = "default") -> StoreSource:
    """Return `database` if it is a client of holdfast, else a Source made of a redis-py client. Raises UsageError.

    With `awaited` it must be async, otherwise sync.
    """
    if isinstance(database, Driven):
        return database
    if not isinstance(getattr(database, "shard", None), Shard) and not hasattr(database, "connection_pool"):
        raise UsageError(f"database must be a client of holdfast or of redis-py, not {database!r:.80}")
    if awaited != hasattr(database, "__aenter__"):
        raise UsageError(
            f"database must be {'an async' if awaited else 'a sync'} client here, not {database!r:.80}"
        )
    if hasattr(database, "shard"):
        client: StoreSource = database
        return client
    return _driven(database, awaited, namespace)


def _driven(database: object, awaited: bool, namespace: str) -> Driven:
    from holdfast.wire import aio, shared, sync  # both kinds of driver, for clients of the driver only

    opening = settle(
        database, {"namespace": namespace}, aio.DRIVER_CLASSES if awaited else sync.DRIVER_CLASSES
    )
    link = shared.AsyncSharedLink if awaited else shared.SharedLink
    return Driven(opening, opening.shard(), link(opening.settings, opening.target))
