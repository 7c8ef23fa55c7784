"""The blocking link: connections, pools, timeouts, and nothing else. One of two files that import the driver."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol, cast

import hiredis
from redis.backoff import NoBackoff
from redis.connection import Connection, parse_url  # pyright: ignore[reportUnknownVariableType]
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    RedisError,
    ResponseError,
)
from redis.exceptions import TimeoutError as DriverTimeout
from redis.retry import Retry

from holdfast.errors import ConnectionLost, StoreUnsupported, UsageError
from holdfast.settings import Settings
from holdfast.wire.plans import Call, ErrorReply, LinkError, Replies, Step, error_reply, is_demoted
from holdfast.wire.waiting import hang_up, hold

IDLE_KEPT: Final = 16
_socket_of = attrgetter("_sock")
_parse = cast("Callable[[str], dict[str, Any]]", parse_url)
pack: Callable[[Sequence[str | bytes | int | float]], bytes] = cast(
    "Any",
    hiredis.pack_command,  # pyright: ignore[reportUnknownMemberType]
)


class Driver(Protocol):
    """What a link uses of a connection of the driver."""

    def connect(self) -> None: ...
    def disconnect(self) -> None: ...
    def send_packed_command(self, command: list[bytes], check_health: bool = True) -> None: ...
    def read_response(self) -> Any: ...
    def can_read(self, timeout: float = 0) -> bool: ...


class Address:
    """Makes connections to one URL, with the driver's retries off. Raises UsageError for a URL it cannot use.

    `where` finds the URL anew for each connection, for a store that is started when it is needed.
    """

    def __init__(self, settings: Settings, where: Callable[[], str] | None = None) -> None:
        self._settings = settings
        self._where = where
        self._class: Any = None
        self._options: dict[str, Any] = {}
        self._aim(settings.url)
        self.new()

    def _aim(self, url: str) -> None:
        settings = self._settings
        try:
            options: dict[str, Any] = dict(_parse(url))
        except ValueError as error:
            raise UsageError(f"the store URL cannot be used: {error}") from error
        self._class = options.pop("connection_class", Connection)
        options.update(
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            health_check_interval=30,
            decode_responses=False,
        )
        options.setdefault("socket_timeout", settings.timeout)
        options.setdefault("socket_connect_timeout", settings.timeout)
        if not url.startswith("unix:"):
            options.setdefault("socket_keepalive", True)
        elif not options.get("path"):
            raise UsageError(f"{url!r} names no socket: use unix:///path/to/socket")
        self._options = options

    def new(self) -> Driver:
        """A connection that is not yet open."""
        try:
            return cast("Driver", self._class(**self._options))
        except (RedisError, TypeError, ValueError) as error:
            raise UsageError(f"the store URL has an option that cannot be used: {error}") from error

    def open(self) -> Driver:
        """An open connection. Raises LinkError (nothing was sent), StoreUnsupported for wrong credentials."""
        if self._where is not None:
            self._aim(self._where())
        connection = self.new()
        try:
            connection.connect()
        except AuthenticationError as error:
            raise StoreUnsupported(f"the store refused the credentials of the URL: {error}") from error
        except (RedisError, OSError) as error:
            connection.disconnect()
            if "DB index" in str(error):
                raise StoreUnsupported(f"the store has no database of that number: {error}") from error
            raise link_error(error, sent=False) from error
        return connection


def link_error(error: Exception, *, sent: bool = True) -> LinkError:
    """What a failed step means. A timeout inside the driver's handshake arrives under another class."""
    text = str(error)
    return LinkError(
        text, sent=sent, timed_out=isinstance(error, DriverTimeout) or text.startswith("Timeout")
    )


class Link:
    """Sends steps over pooled connections; any number of threads may share it, and it survives a fork."""

    def __init__(self, settings: Settings, where: Callable[[], str] | None = None) -> None:
        self._address = Address(settings, where)
        self._idle: list[Driver] = []
        self._pid = os.getpid()

    def send(self, step: Step) -> Replies:
        """Send the calls of a step together; refusals are among the replies. Raises LinkError."""
        if step.pause:
            hold(step.pause)
        calls = step.calls
        packed = pack(calls[0]) if len(calls) == 1 else _pack(calls)
        connection = self._take()
        try:
            connection.send_packed_command([packed])
            replies = _read(connection, len(calls))
        except BusyLoadingError as error:
            connection.disconnect()
            if len(calls) == 1:
                return [ErrorReply(f"LOADING {error}")]
            raise LinkError(str(error)) from error
        except (RedisError, OSError) as error:
            connection.disconnect()
            raise link_error(error) from error
        except BaseException:
            # An interrupt between question and answer leaves replies under way that belong to nobody.
            connection.disconnect()
            raise
        if len(self._idle) < IDLE_KEPT and not is_demoted(replies):
            self._idle.append(connection)
        else:
            connection.disconnect()
        return replies

    def _take(self) -> Driver:
        pid = os.getpid()
        if pid != self._pid:
            # The parent's connections are its own: forget them without a word to the store.
            self._idle, self._pid = [], pid
        try:
            return self._idle.pop()
        except IndexError:
            return self._address.open()

    def bell(self) -> "Bell":
        """A new bell: a connection that waits for queues to ring."""
        return Bell(self._address)

    def listener(self) -> "Listener":
        """A new listener: a connection that hears what is published."""
        return Listener(self._address)

    def close(self) -> None:
        """Close what is idle; the link may be used again."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.disconnect()


def _pack(calls: list[Call]) -> bytes:
    return b"".join([pack(call) for call in calls])


def _read(connection: Driver, count: int) -> Replies:
    replies: Replies = []
    read = connection.read_response
    for _ in range(count):
        try:
            replies.append(read())
        except ResponseError as error:
            replies.append(error_reply(error))
    return replies


class _Waiter:
    """A connection of its own that somebody waits on; it is opened at first use and after it broke."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Driver | None = None
        self._pid = os.getpid()

    def fileno(self) -> int:
        """The socket to select on. Raises ConnectionLost when there is none."""
        if self._connection is None:
            raise ConnectionLost("this connection is not open")
        return int(_socket_of(self._connection).fileno())

    def close(self) -> None:
        """End the connection; the next use opens a new one. Another thread may call this to interrupt."""
        connection, self._connection = self._connection, None
        if connection is not None and self._pid == os.getpid():
            connection.disconnect()

    def _say(self, *words: str | bytes | int | float) -> None:
        if self._pid != os.getpid():
            self._connection, self._pid = None, os.getpid()
        try:
            if self._connection is None:
                self._connection = self._address.open()
            self._connection.send_packed_command([pack(words)], check_health=False)
        except (LinkError, RedisError, OSError) as error:
            self.close()
            raise ConnectionLost(f"the waiting connection was lost: {error}") from error

    def _hear(self, timeout: float) -> Any:
        """The next reply, or None when there was none for `timeout` seconds. Raises ConnectionLost."""
        connection = self._connection
        if connection is None:
            raise ConnectionLost("this connection is not open")
        try:
            return [connection.read_response()] if connection.can_read(timeout) else None
        except (RedisError, OSError, ValueError, AttributeError, TypeError) as error:
            # The last three: another thread closed it under us.
            self.close()
            raise ConnectionLost(f"the waiting connection was lost: {error}") from error


class Bell(_Waiter):
    """Waits until one of some queues rings. `send` and `receive` may be apart, with a selector in between."""

    _patience = 0.0

    def send(self, keys: Sequence[str], timeout: float) -> None:
        """Begin to wait on `keys` for at most `timeout` seconds. Raises ConnectionLost."""
        timeout = max(timeout, 0.01)
        self._patience = timeout + 5.0
        self._say("BLPOP", *keys, f"{timeout:.3f}")

    def leave(self) -> None:
        """End the connection; when this returns, the store lets no bell ring for it any more."""
        if self._connection is not None and self._pid == os.getpid():
            hang_up(_socket_of(self._connection))
        self.close()

    def receive(self) -> str | None:
        """The key that rang, None when the wait ended without. Raises ConnectionLost."""
        heard = self._hear(self._patience)
        if heard is None:
            self.close()
            raise ConnectionLost("the store did not end a wait in time")
        [reply] = heard
        return None if reply is None else str(reply[0].decode())

    def wait(self, keys: Sequence[str], timeout: float) -> str | None:
        """Wait until one of `keys` rings, for at most `timeout` seconds. Raises ConnectionLost."""
        self.send(keys, timeout)
        return self.receive()


class Listener(_Waiter):
    """Hears messages on channels."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._heard: deque[tuple[str, bytes]] = deque()

    def subscribe(self, *channels: str) -> None:
        """Listen on `channels` too; returns when the store has confirmed all. Raises ConnectionLost."""
        self._confirmed("SUBSCRIBE", channels)

    def unsubscribe(self, *channels: str) -> None:
        """Listen on `channels` no more. Raises ConnectionLost."""
        self._confirmed("UNSUBSCRIBE", channels)

    def receive(self, timeout: float) -> tuple[str, bytes] | None:
        """The next (channel, message), None when none came for `timeout` seconds. Raises ConnectionLost."""
        if self._heard:
            return self._heard.popleft()
        heard = self._hear(timeout)
        if heard is not None and heard[0][0] == b"message":
            return heard[0][1].decode(), heard[0][2]
        return None

    def _confirmed(self, verb: str, channels: Sequence[str]) -> None:
        self._say(verb, *channels)
        missing = len(channels)
        while missing:
            heard = self._hear(5.0)
            if heard is None:
                self.close()
                raise ConnectionLost("the store did not confirm a subscription")
            if heard[0][0] == b"message":
                self._heard.append((heard[0][1].decode(), heard[0][2]))
            else:
                missing -= 1
