"""The link of the sync client: connections, pools and timeouts. One of the two files that import the driver."""

import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final, Protocol, cast

import hiredis
from redis.backoff import NoBackoff
from redis.client import Redis as Redis
from redis.connection import (
    Connection,
    ConnectionPool,
    HiredisRespSerializer,
    SSLConnection,
    parse_url,  # pyright: ignore[reportUnknownVariableType]
)
from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError, ResponseError
from redis.exceptions import TimeoutError as DriverTimeout
from redis.retry import Retry

from holdfast.commands import Reply
from holdfast.errors import ConnectionLost, StoreUnsupported
from holdfast.settings import Settings
from holdfast.wire.address import DEFAULT_TARGET, AddressBase, DriverClasses, StoreTarget
from holdfast.wire.plans import ErrorReply, LinkError, Replies, Step, error_reply, is_demoted
from holdfast.wire.waiting import hang_up, has_ended, shut_down, sleep

_PRIMARY: Final = "give the URL of the primary"
IDLE_KEPT: Final = 16
FAILURES: Final = (RedisError, OSError)
"""What the driver raises when a connection cannot be made or used."""
# The last three: another thread closed the connection while it was in use.
_ENDED: Final = (*FAILURES, ValueError, AttributeError, TypeError)
_socket_of = attrgetter("_sock")
_pack_text: Callable[[tuple[object, ...]], bytes] = attrgetter("pack_command")(hiredis)


def pack(words: Sequence[str | bytes | int | float]) -> bytes:
    """Return a command as it is sent.

    Numbers are made text here: where hiredis does it, an exception of a signal handler ends the process by SIGSEGV.
    """
    return _pack_text(
        tuple(
            [
                word
                if (kind := type(word)) is str or kind is bytes
                else str(word)
                if kind is int
                else _text(word)
                for word in words
            ]
        )
    )


def _text(word: object) -> object:
    """Return a number as text; hiredis refuses any other type."""
    return str(word) if isinstance(word, (int, float)) and not isinstance(word, bool) else word


class _Packer:
    """Packs what the driver sends itself, as `SELECT 3`."""

    def __init__(self) -> None:
        self._pack: Callable[..., list[bytes]] = attrgetter("pack")(HiredisRespSerializer())

    def pack(self, *words: object) -> list[bytes]:
        return self._pack(*map(_text, words))


class DriverConnection(Protocol):
    """The methods of a driver's connection that a link calls."""

    def connect(self) -> None: ...
    def disconnect(self) -> None: ...
    def send_packed_command(self, command: list[bytes], check_health: bool = True) -> None: ...
    def read_response(self, disable_decoding: bool = False) -> Reply: ...
    def can_read(self, timeout: float = 0) -> bool: ...


DRIVER_CLASSES: Final = DriverClasses(
    Redis,
    ConnectionPool,
    Connection,
    SSLConnection,
    cast("Callable[[str], dict[str, object]]", parse_url),
    lambda: Retry(NoBackoff(), 0),
    _Packer(),
)


class Address(AddressBase):
    """Make connections to one store, with the driver's retries off. Raises UsageError for options it cannot use."""

    def __init__(self, settings: Settings, target: StoreTarget = DEFAULT_TARGET) -> None:
        super().__init__(DRIVER_CLASSES, settings, target)

    def open(self) -> DriverConnection:
        """Return an open connection. Raises LinkError (nothing was sent), StoreUnsupported for wrong credentials."""
        if self._target.where is not None:
            self._aim(self._target.where())
        connection = cast("DriverConnection", self._next())
        try:
            connection.connect()
        except FAILURES as error:
            connection.disconnect()
            self.gate.failed(error)
            raise opening_error(error) from error
        return connection


def opening_error(error: Exception) -> Exception:
    """Return the error for a connection that could not be opened: a LinkError (nothing was sent), or StoreUnsupported."""
    if isinstance(error, AuthenticationError):
        return StoreUnsupported(f"the store refused the credentials of the URL: {error}")
    certificate = _certificate_error(error)
    if certificate is not None:
        return StoreUnsupported(
            f"the certificate of the store cannot be verified: {certificate.verify_message or certificate}; name the file of its "
            "authority with ssl_ca_certs=…, or ?ssl_ca_certs=FILE in the URL, and the host as the certificate does"
        )
    text = str(error).lower()
    if isinstance(error, ResponseError) and "unknown command" in text and "select" in text:
        return StoreUnsupported(
            f"the URL does not lead to a store with databases; if it is a sentinel, {_PRIMARY} ({error})"
        )
    if "DB index" in str(error):
        return StoreUnsupported(f"the store does not have that database: {error}")
    return link_error(error, sent=False)


def _certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Return the error of a certificate that led to an error of the driver."""
    found = [one for one in _causes(error) if isinstance(one, ssl.SSLCertVerificationError)]
    return found[0] if found else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Return an error and those that led to it."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


_REFUSALS: Final = (ConnectionRefusedError, FileNotFoundError, socket.gaierror)


def is_refused(error: BaseException) -> bool:
    """Whether an error of the driver means that nothing listens there, or that the name of the machine is not known."""
    return any(isinstance(one, _REFUSALS) for one in _causes(error))


def link_error(error: Exception, *, sent: bool = True) -> LinkError:
    """Return the error for a failed step. A timeout inside the driver's handshake has another class."""
    text = str(error)
    timed_out = isinstance(error, DriverTimeout) or text.startswith("Timeout")
    return LinkError(text, sent=sent, timed_out=timed_out, refused=is_refused(error))


class Link:
    """Send steps over pooled connections. Any number of threads may share a link, and it may be used after a fork."""

    def __init__(self, settings: Settings, target: StoreTarget = DEFAULT_TARGET) -> None:
        self.address = Address(settings, target)
        self._idle: list[DriverConnection] = []
        self._pid = os.getpid()

    def send(self, step: Step) -> Replies:
        """Send the calls of a step together; refusals are among the replies. Raises LinkError."""
        if step.pause:
            sleep(step.pause)
            if not step.calls:  # only to let others have their turn
                return []
        calls = step.calls
        packed = pack(calls[0]) if len(calls) == 1 else b"".join([pack(call) for call in calls])
        connection = self._take()
        try:
            connection.send_packed_command([packed])
            replies = self._read(connection, len(calls))
        except BusyLoadingError as error:
            self._discard(connection)
            if len(calls) == 1:
                return [ErrorReply(f"LOADING {error}")]
            raise LinkError(str(error)) from error
        except FAILURES as error:
            self.address.gate.failed(error)
            self._discard(connection)
            # A single call that was not written to its end did not run.
            raise link_error(error, sent=len(calls) > 1 or "writing to socket" not in str(error)) from error
        except BaseException:
            # After an interrupt between request and reply, the connection would return the replies of this step to the next.
            self._discard(connection)
            raise
        self.address.gate.failing = False
        if (len(replies) > 1 or type(replies[0]) is ErrorReply) and is_demoted(replies):
            self._discard(connection)
        else:
            self._keep(connection)
        return replies

    def _read(self, connection: DriverConnection, count: int) -> Replies:
        return read_replies(connection.read_response, count)

    def _keep(self, connection: DriverConnection) -> None:
        if len(self._idle) < IDLE_KEPT:
            self._idle.append(connection)
        else:
            connection.disconnect()

    def _discard(self, connection: DriverConnection) -> None:
        connection.disconnect()

    def _take(self) -> DriverConnection:
        pid = os.getpid()
        if pid != self._pid:
            # The connections belong to the parent process: drop them without closing.
            self._idle, self._pid = [], pid
        try:
            return self._idle.pop()
        except IndexError:
            return self.address.open()

    def wake_up(self) -> "WakeUp":
        """Return a new connection that waits for wake-ups."""
        return WakeUp(self.address)

    def listener(self) -> "Listener":
        """Return a new connection that receives published messages."""
        return Listener(self.address)

    def close(self) -> None:
        """Close idle connections. The link may be used again."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.disconnect()


def read_replies(read: Callable[[], Reply], count: int) -> Replies:
    """Read `count` replies; refusals are among them, as ErrorReply."""
    replies: Replies = []
    for _ in range(count):
        try:
            replies.append(read())
        except ResponseError as error:
            replies.append(error_reply(error))
    return replies


class _Waiter:
    """A connection of its own for a blocking wait. It is opened at the first use, and again after it was lost."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: DriverConnection | None = None
        self._pid = os.getpid()

    def fileno(self) -> int:
        """Return the socket to select on. Raises ConnectionLost if the connection is not open."""
        if self._connection is None:
            raise ConnectionLost("this connection is not open")
        return int(_socket_of(self._connection).fileno())

    def close(self) -> None:
        """Close the connection. The next use opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None and self._pid == os.getpid():
            connection.disconnect()

    def interrupt(self) -> None:
        """Make a wait on this connection raise ConnectionLost. Call it from another thread or a signal handler."""
        connection = self._connection
        if connection is not None and self._pid == os.getpid():
            shut_down(_socket_of(connection))

    def _send(self, *words: str | bytes | int | float) -> None:
        if self._pid != os.getpid():
            self._connection, self._pid = None, os.getpid()
        try:
            if self._connection is None:
                self._connection = self._address.open()
            self._connection.send_packed_command([pack(words)], check_health=False)
        except (LinkError, *FAILURES) as error:
            self.close()
            raise ConnectionLost(f"the waiting connection was lost: {error}") from error

    def _receive(self, timeout: float) -> list[Reply] | None:
        """Return [reply], or None if none came for `timeout` seconds. Raises ConnectionLost."""
        connection = self._connection
        if connection is None:
            raise ConnectionLost("this connection is not open")
        try:
            return [connection.read_response()] if connection.can_read(timeout) else None
        except _ENDED as error:
            is_closed = _socket_of(connection) is None
            self.close()
            if not is_closed and not isinstance(error, FAILURES):
                raise  # a signal handler raised it
            raise ConnectionLost(f"the waiting connection was lost: {error}") from error


class WakeUp(_Waiter):
    """Wait for a wake-up at some wake keys. `send` and `receive` may be called separately, with a selector in between."""

    def send(self, keys: Sequence[str], timeout: float) -> None:
        """Start to wait at `keys` for at most `timeout` seconds. Raises ConnectionLost."""
        if self._connection is not None and has_ended(_socket_of(self._connection)):
            self.close()
        self._timeout = timeout + 5.0
        self._send("BLPOP", *keys, f"{max(timeout, 0.01):.3f}")

    def leave(self) -> None:
        """Close the connection. After this returns, the store sends no wake-up to it."""
        if self._connection is not None and self._pid == os.getpid():
            hang_up(_socket_of(self._connection))
        self.close()

    def receive(self) -> str | None:
        """Return the key of the wake-up, None if the wait timed out. Raises ConnectionLost."""
        received = self._receive(self._timeout)
        if received is None:
            self.close()
            raise ConnectionLost("the store did not end a wait in time")
        return None if received[0] is None else str(received[0][0].decode())

    def wait(self, keys: Sequence[str], timeout: float) -> str | None:
        """Wait for a wake-up at one of `keys` for at most `timeout` seconds. Returns as `receive`. Raises ConnectionLost."""
        self.send(keys, timeout)
        return self.receive()


class Listener(_Waiter):
    """Receive messages from channels."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._messages: deque[tuple[str, bytes]] = deque()

    def subscribe(self, *channels: str, within: float = 5.0) -> None:
        """Subscribe to `channels`. Returns when the store has confirmed all, each `within` seconds. Raises ConnectionLost."""
        self._confirmed("SUBSCRIBE", channels, within)

    def unsubscribe(self, *channels: str) -> None:
        """Unsubscribe from `channels`. Raises ConnectionLost."""
        self._confirmed("UNSUBSCRIBE", channels, 5.0)

    def receive(self, timeout: float) -> tuple[str, bytes] | None:
        """Return the next (channel, message), None if none came for `timeout` seconds. Raises ConnectionLost."""
        if self._messages:
            return self._messages.popleft()
        received = self._receive(timeout)
        if received is not None and received[0][0] == b"message":
            return received[0][1].decode(), received[0][2]
        return None

    def _confirmed(self, verb: str, channels: Sequence[str], within: float) -> None:
        self._send(verb, *channels)
        missing = len(channels)
        while missing:
            received = self._receive(within)
            if received is None:
                self.close()
                raise ConnectionLost("the store did not confirm a subscription")
            if received[0][0] == b"message":
                self._messages.append((received[0][1].decode(), received[0][2]))
            else:
                missing -= 1
