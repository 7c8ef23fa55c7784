"""How connections are made, for the sync and the async link alike; each passes its classes of the driver.

A link sets some options of the driver itself, because it repeats calls, reads bytes and keeps its own connections.
Users may give these options too: they apply to `client.database`, the driver's client for users.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, cast

import msgspec

from holdfast.errors import UsageError
from holdfast.settings import Settings, shown_url, unknown_option
from holdfast.wire.outage import gate_of
from holdfast.wire.plans import LinkError

LINKS_OWN: Final = frozenset(
    {
        "auto_close_connection_pool", "cache", "cache_config", "command_packer", "decode_responses", "encoding",
        "encoding_errors", "event_dispatcher", "legacy_responses", "maint_notifications_config", "max_connections",
        "parser_class", "protocol", "retry", "retry_on_error", "retry_on_timeout", "single_connection_client",
    }
)  # fmt: skip
"""Options of the driver that a link sets itself."""
_NOT_TAKEN: Final = frozenset(
    {"self", "kwargs", "connection_pool", "oss_cluster_maint_notifications_handler"}
)


class DriverClasses(NamedTuple):
    """The classes and functions of the driver that make connections, pools and clients: sync or async.

    `packer` packs the commands that the driver sends itself; None for the driver's own.
    """

    redis: type
    pool: Callable[..., object]
    connection: type
    tls_connection: type
    parse: Callable[[str], Mapping[str, object]]
    no_retry: Callable[[], object]
    packer: object = None


class DriverPool(Protocol):
    """The parts of a pool of the driver that determine how its connections are made."""

    connection_class: Callable[..., object]
    connection_kwargs: Mapping[str, object]


class DriverClient(Protocol):
    """The part of a client of the driver that an address uses."""

    connection_pool: DriverPool


class StoreTarget(msgspec.Struct, frozen=True):
    """Where connections lead, in addition to the URL of the settings.

    `options` are passed to the driver. `where` returns the URL for each new connection, for a store that is started on
    demand. `existing` is a client of the driver whose connections are used unchanged.
    """

    options: Mapping[str, object] = {}
    where: Callable[[], str] | None = None
    existing: DriverClient | None = None

    def __repr__(self) -> str:
        """Show only the names of the options: their values may be secret."""
        return f"Target({', '.join(self.options)})"


DEFAULT_TARGET: Final = StoreTarget()
"""The URL of the settings, without options."""


class AddressBase:
    """Make connections that are not open yet, and clients of the driver for users.

    Raises UsageError for a URL or an option that cannot be used.
    """

    def __init__(
        self, drive: DriverClasses, settings: Settings, target: StoreTarget = DEFAULT_TARGET
    ) -> None:
        self._drive = drive
        self._settings = settings
        self._target = target
        self.gate = gate_of(settings.url)
        self._class: Callable[..., object] = drive.connection
        self._given: dict[str, object] = {}
        if target.existing is None:
            self._aim(settings.url)
        else:
            pool = target.existing.connection_pool
            self._class = pool.connection_class
            self._given = _usable(drive, pool.connection_kwargs)
        # Raises for unusable options now, not at the first call.
        self._made()

    def _aim(self, url: str) -> None:
        try:
            parsed = dict(self._drive.parse(url))
        except ValueError:
            # The message of the driver quotes the URL, which may hold a password.
            raise UsageError(f"the store URL {shown_url(url)!r} cannot be used") from None
        self._class = cast("type", parsed.pop("connection_class", self._drive.connection))
        if url.startswith("unix:") and not parsed.get("path"):
            raise UsageError(f"{shown_url(url)!r} names no socket: use unix:///path/to/socket")
        if not url.startswith("rediss:"):
            _refuse_tls(self._target.options)
        self._given = {**self._target.options, **parsed}

    def _next(self, **over: object) -> object:
        """Return a connection to open now. Raises LinkError while reconnects have to wait."""
        after = self.gate.wait_time()
        if after:
            raise LinkError(self.gate.reason, sent=False, after=after)
        return self._made(**over)

    def _made(self, **over: object) -> object:
        """Return a connection for a link: it reads bytes, has no retries of the driver, and every wait has a timeout."""
        options: dict[str, object] = {n: value for n, value in self._given.items() if n not in LINKS_OWN}
        options["retry"] = self._drive.no_retry()
        if self._drive.packer is not None:
            options["command_packer"] = self._drive.packer
        options["protocol"] = 2
        options["decode_responses"] = False
        options.setdefault("health_check_interval", 30)
        for wait in ("socket_timeout", "socket_connect_timeout"):
            if options.get(wait) is None:
                options[wait] = self._settings.timeout
        if self._target.existing is None and "path" not in options:
            options.setdefault("socket_keepalive", True)
        return self._construct({**options, **over})

    def _construct(self, options: dict[str, object]) -> object:
        try:
            return self._class(**options)
        except (UsageError, RecursionError, MemoryError):
            raise
        except Exception as error:  # of any kind: options of people meet code of the driver
            if not self._refuses(options):
                raise  # a signal handler raised it
            raise UsageError(f"the store URL has an option that cannot be used: {error}") from error

    def _refuses(self, options: Mapping[str, object]) -> bool:
        """Whether the driver refuses the options, which it then does each time."""
        try:
            self._class(**options)
        except (RecursionError, MemoryError):
            raise
        except Exception:
            return True
        return False

    def redis(self) -> Any:
        """Return a new client of the driver for the same store, with the given options; it decodes replies to text.

        If `existing` was given, it has the settings of that client's connections.
        """
        existing = self._target.existing
        if existing is not None:
            pool = existing.connection_pool
            return self._client(pool.connection_class, _usable(self._drive, pool.connection_kwargs))
        most = {"max_connections": self._given.get("max_connections"), "decode_responses": True}
        if self._target.where is not None:
            return self._client(self._found, most)
        return self._client(self._class, self._for_users() | most)

    def _client(self, kind: Callable[..., object], options: Mapping[str, object]) -> object:
        """Return a client of the driver that closes its pool when it is closed."""
        redis: Any = self._drive.redis
        return redis.from_pool(self._drive.pool(connection_class=kind, **options))

    def _for_users(self) -> dict[str, object]:
        known = _parameters(self._class)
        given = {name: value for name, value in self._given.items() if name in known}
        return {"command_packer": self._drive.packer, **given} if self._drive.packer is not None else given

    def _found(self, **of_pool: object) -> object:
        """Return a connection for a pool, to a store that is located first, and started if needed."""
        if self._target.where is not None:
            self._aim(self._target.where())
        return self._construct({**self._for_users(), **of_pool})


def check_options(drive: DriverClasses, options: Iterable[str], known: tuple[str, ...]) -> None:
    """Raise UsageError for an option that neither holdfast (`known`) nor the driver has."""
    taken = driver_options(drive)
    for option in options:
        if option not in taken:
            raise unknown_option(
                "a client", option, known, others=tuple(sorted(taken)), whose="those of redis.Redis"
            )


@cache
def driver_options(drive: DriverClasses) -> frozenset[str]:
    """Return the names of the options of the driver's client and connections that users may give."""
    return (_parameters(drive.redis) | _parameters(drive.tls_connection)) - _NOT_TAKEN


def _nothing() -> None:
    """Stand for the constructor of a class that has none."""


@cache
def _parameters(kind: Callable[..., object]) -> frozenset[str]:
    """Return the names of the constructor parameters of a class and its bases."""
    found: set[str] = set()
    for ancestor in cast("type", kind).__mro__[:-1]:
        found |= set(inspect.signature(vars(ancestor).get("__init__", _nothing)).parameters)
    return frozenset(found)


def _refuse_tls(options: Iterable[str]) -> None:
    for option in options:
        if option.startswith("ssl_"):
            raise UsageError(
                f"{option} is for TLS: give ssl=True with a host, or a URL that begins with rediss://"
            )


def _usable(drive: DriverClasses, given: Mapping[str, object]) -> dict[str, object]:
    """Return those arguments of a pool's connections that users may give; the others are internal to the driver."""
    known = driver_options(drive) | {"path", "host", "port", "connection_pool"}
    return {name: value for name, value in given.items() if name in known}
