"""The link of the async client: connections, pools and timeouts. The other file that imports the driver."""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol, cast

from redis.asyncio.client import Redis as Redis
from redis.asyncio.connection import (
    Connection,
    ConnectionPool,
    SSLConnection,
    parse_url,  # pyright: ignore[reportUnknownVariableType]
)
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, ResponseError

from holdfast.commands import Reply
from holdfast.errors import ConnectionLost
from holdfast.settings import Settings
from holdfast.wire.address import DEFAULT_TARGET, AddressBase, DriverClasses, StoreTarget
from holdfast.wire.plans import ErrorReply, LinkError, Replies, Step, error_reply, is_demoted
from holdfast.wire.sync import FAILURES, link_error, opening_error, pack
from holdfast.wire.waiting import PerLoop, close_transport, hang_up_async

IDLE_KEPT: Final = 16
_streams_of = attrgetter("_reader", "_writer")


class DriverConnection(Protocol):
    """The methods of a driver's connection that a link calls."""

    async def connect(self) -> None: ...
    async def disconnect(self, nowait: bool = False) -> None: ...
    async def send_packed_command(self, command: bytes, check_health: bool = True) -> None: ...
    async def read_response(
        self, disable_decoding: bool = False, *, disconnect_on_error: bool = True
    ) -> Reply: ...


DRIVER_CLASSES: Final = DriverClasses(
    Redis,
    ConnectionPool,
    Connection,
    SSLConnection,
    cast("Callable[[str], dict[str, object]]", parse_url),
    lambda: Retry(NoBackoff(), 0),
)


class Address(AddressBase):
    """Make connections to one store, with the driver's retries off. Raises UsageError for options it cannot use."""

    def __init__(self, settings: Settings, target: StoreTarget = DEFAULT_TARGET) -> None:
        super().__init__(DRIVER_CLASSES, settings, target)

    async def open(self, **over: object) -> DriverConnection:
        """Return an open connection. Raises LinkError (nothing was sent), StoreUnsupported for wrong credentials."""
        if self._target.where is not None:
            self._aim(await asyncio.to_thread(self._target.where))
        connection = cast("DriverConnection", self._next(**over))
        try:
            await _cancellable(connection.connect())
        except FAILURES as error:
            await connection.disconnect(nowait=True)
            self.gate.failed(error)
            raise opening_error(error) from error
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection


class AsyncLink:
    """Send steps over pooled connections. Each event loop has its own, and the link may be used after a fork."""

    def __init__(self, settings: Settings, target: StoreTarget = DEFAULT_TARGET) -> None:
        self.address = Address(settings, target)
        self._idle: PerLoop[list[DriverConnection]] = PerLoop(list, _close_all)
        self._pid = os.getpid()

    async def send(self, step: Step) -> Replies:
        """Send the calls of a step together; refusals are among the replies. Raises LinkError."""
        if step.pause:
            await asyncio.sleep(step.pause)
            if not step.calls:  # only to let others have their turn
                return []
        calls = step.calls
        packed = b"".join([pack(call) for call in calls])
        connection = await self._take()
        try:
            await _cancellable(connection.send_packed_command(packed))
            replies = await self._read(connection, len(calls))
        except BusyLoadingError as error:
            await self._discard(connection)
            if len(calls) == 1:
                return [ErrorReply(f"LOADING {error}")]
            raise LinkError(str(error)) from error
        except FAILURES as error:
            self.address.gate.failed(error)
            await self._discard(connection)
            raise link_error(error) from error
        except BaseException:
            # After a cancellation, the connection would return the replies of this step to the next.
            await self._discard(connection)
            raise
        self.address.gate.failing = False
        if (len(replies) > 1 or type(replies[0]) is ErrorReply) and is_demoted(replies):
            await self._discard(connection)
        else:
            await self._keep(connection)
        return replies

    async def _read(self, connection: DriverConnection, count: int) -> Replies:
        return await read_replies(connection.read_response, count)

    async def _keep(self, connection: DriverConnection) -> None:
        idle = self._idle.here()
        if len(idle) < IDLE_KEPT:
            idle.append(connection)
        else:
            await connection.disconnect(nowait=True)

    async def _discard(self, connection: DriverConnection) -> None:
        await connection.disconnect(nowait=True)

    async def _take(self) -> DriverConnection:
        if self._pid != os.getpid():
            # The connections belong to the parent process.
            self._idle, self._pid = PerLoop(list, _close_all), os.getpid()
        idle = self._idle.here()
        return idle.pop() if idle else await self.address.open()

    def wake_up(self) -> "AsyncWakeUp":
        """Return a new connection that waits for wake-ups."""
        return AsyncWakeUp(self.address)

    def listener(self) -> "AsyncListener":
        """Return a new connection that receives published messages."""
        return AsyncListener(self.address)

    async def close(self) -> None:
        """Close the idle connections of this loop and of loops that have ended. The link may be used again."""
        idle = self._idle.here()
        while idle:
            await idle.pop().disconnect()
        self.drop()

    def drop(self) -> None:
        """Close idle connections without a running loop, after their loops have ended."""
        if self._pid == os.getpid():
            self._idle.drop()


async def _cancellable(call: Awaitable[None]) -> None:
    """Await a call of the driver. Raises CancelledError if it was cancelled meanwhile.

    The driver swallows that while it connects, and `wait_for` of Python 3.11, with which it sends, at its end.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    await call
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError


def _close_all(idle: list[DriverConnection]) -> None:
    for held in idle:
        close_transport(_streams_of(held)[1])
        connection: Any = held
        connection._reader = connection._writer = None


async def read_replies(read: Callable[[], Awaitable[Reply]], count: int) -> Replies:
    """Read `count` replies; refusals are among them, as ErrorReply."""
    replies: Replies = []
    for _ in range(count):
        try:
            replies.append(await read())
        except ResponseError as error:
            replies.append(error_reply(error))
    return replies


class _Waiter:
    """A connection of its own for the wait of one task. It is opened at the first use, and again after it was lost."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: DriverConnection | None = None

    async def close(self) -> None:
        """Close the connection. The next use opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    async def _send(self, *words: str | bytes | int | float) -> None:
        try:
            if self._connection is None:
                self._connection = await self._address.open(socket_timeout=None)
            await _cancellable(self._connection.send_packed_command(pack(words), check_health=False))
        except (LinkError, *FAILURES) as error:
            await self.close()
            raise ConnectionLost(f"the waiting connection was lost: {error}") from error

    async def _receive(self) -> Reply:
        connection = self._connection
        if connection is None:
            raise ConnectionLost("this connection is not open")
        try:
            return await connection.read_response(disconnect_on_error=False)
        except FAILURES as error:
            await self.close()
            raise ConnectionLost(f"the waiting connection was lost: {error}") from error
        except BaseException:
            # Cancelled between request and reply: the reply would be read as that of the next request.
            await self._abandon()
            raise

    async def _abandon(self) -> None:
        await self.close()


class AsyncWakeUp(_Waiter):
    """Wait for a wake-up at some wake keys. After a cancelled wait has returned, the store sends no wake-up to it."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._leaving = False

    def leave(self) -> bool:
        """End the wait of another task, which then returns a wake-up that was on its way, or None; no wake-up is lost.

        Returns False if that task does not wait yet. Over TLS, which has no half-close, it raises ConnectionLost.
        """
        if self._connection is None:
            return False
        writer: asyncio.StreamWriter = _streams_of(self._connection)[1]
        self._leaving = writer.can_write_eof()
        if self._leaving:
            writer.write_eof()
        else:
            close_transport(writer)
        return True

    async def _abandon(self) -> None:
        if self._connection is not None:
            await hang_up_async(*_streams_of(self._connection))
        await self.close()

    async def wait(self, keys: Sequence[str], timeout: float) -> str | None:
        """Return the key of the wake-up, None if none came for `timeout` seconds. Raises ConnectionLost."""
        timeout = max(timeout, 0.01)
        try:
            async with asyncio.timeout(timeout + 5.0):
                await self._send("BLPOP", *keys, f"{timeout:.3f}")
                reply = await self._receive()
        except TimeoutError:
            raise ConnectionLost("the store did not end a wait in time") from None
        except ConnectionLost:
            if not self._leaving:
                raise
            reply = None
        if self._leaving:
            self._leaving = False
            await self.close()
        return None if reply is None else str(reply[0].decode())


class AsyncListener(_Waiter):
    """Receive messages from channels. One task subscribes and receives."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._messages: deque[tuple[str, bytes]] = deque()
        self._reading: asyncio.Task[Reply] | None = None

    async def subscribe(self, *channels: str) -> None:
        """Subscribe to `channels`. Returns when the store has confirmed all. Raises ConnectionLost."""
        await self._confirmed("SUBSCRIBE", channels)

    async def unsubscribe(self, *channels: str) -> None:
        """Unsubscribe from `channels`. Raises ConnectionLost."""
        await self._confirmed("UNSUBSCRIBE", channels)

    async def receive(self, timeout: float) -> tuple[str, bytes] | None:
        """Return the next (channel, message), None if none came for `timeout` seconds. Raises ConnectionLost."""
        if self._messages:
            return self._messages.popleft()
        reply = await self._next(timeout)
        if reply is not None and reply[0] == b"message":
            return reply[1].decode(), reply[2]
        return None

    async def close(self) -> None:
        """Close the connection. The next use opens a new one."""
        reading, self._reading = self._reading, None
        if reading is not None and reading is not asyncio.current_task():
            reading.cancel()
            await asyncio.wait([reading])
        await super().close()

    async def _next(self, timeout: float) -> Reply:
        # The read continues after the wait: cancelling it would end the connection.
        reading = self._reading = self._reading or asyncio.ensure_future(self._receive())
        done, _ = await asyncio.wait([reading], timeout=timeout)
        if not done:
            return None
        self._reading = None
        if reading.cancelled():
            raise ConnectionLost("this connection was closed")
        return reading.result()

    async def _confirmed(self, verb: str, channels: Sequence[str]) -> None:
        await self._send(verb, *channels)
        missing = len(channels)
        while missing:
            reply = await self._next(5.0)
            if reply is None:
                await self.close()
                raise ConnectionLost("the store did not confirm a subscription")
            if reply[0] == b"message":
                self._messages.append((reply[1].decode(), reply[2]))
            else:
                missing -= 1
