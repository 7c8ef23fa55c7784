"""Links over a client of the driver that the user made: they take connections from its pool and return them to it.

Such a connection may have no timeout and decode replies to text; the links set a timeout and read bytes. A client of the
driver with a single connection shares it with the link, call by call.
"""

import asyncio
import os
from functools import partial
from threading import Lock
from typing import Any, Protocol, cast

from holdfast.commands import Reply
from holdfast.errors import UsageError
from holdfast.settings import Settings
from holdfast.wire import aio, sync
from holdfast.wire.address import StoreTarget
from holdfast.wire.plans import Replies


class _Lock(Protocol):
    def acquire(self) -> bool: ...
    def release(self) -> None: ...


class _Pool(Protocol):
    def get_connection(self) -> sync.DriverConnection: ...
    def release(self, connection: sync.DriverConnection) -> None: ...


class _AsyncPool(Protocol):
    async def get_connection(self) -> aio.DriverConnection: ...
    async def release(self, connection: aio.DriverConnection) -> None: ...


class SharedLink(sync.Link):
    """The link over a sync client of the driver."""

    def __init__(self, settings: Settings, target: StoreTarget) -> None:
        _check(target.existing, sync.Redis, "a Client")
        super().__init__(settings, target)
        existing = cast("Any", target.existing)
        self._pool: _Pool = existing.connection_pool
        self._timeout = settings.timeout
        self._single: sync.DriverConnection | None = existing.connection
        self._lock: _Lock = getattr(existing, "single_connection_lock", None) or Lock()

    def _take(self) -> sync.DriverConnection:
        if self._single is not None and self._pid == os.getpid():
            self._lock.acquire()
            return self._single
        try:
            return self._pool.get_connection()
        except sync.FAILURES as error:
            raise sync.opening_error(error) from error

    def _read(self, connection: sync.DriverConnection, count: int) -> Replies:
        def read() -> Reply:
            if not connection.can_read(self._timeout):
                raise TimeoutError("Timeout: no reply in time")
            return connection.read_response(disable_decoding=True)

        return sync.read_replies(read, count)

    def _keep(self, connection: sync.DriverConnection) -> None:
        if connection is self._single:
            self._lock.release()
        else:
            self._pool.release(connection)

    def _discard(self, connection: sync.DriverConnection) -> None:
        connection.disconnect()
        self._keep(connection)


class AsyncSharedLink(aio.AsyncLink):
    """The link over an async client of the driver."""

    def __init__(self, settings: Settings, target: StoreTarget) -> None:
        _check(target.existing, aio.Redis, "an AsyncClient")
        super().__init__(settings, target)
        self._existing = cast("Any", target.existing)
        self._pool: _AsyncPool = self._existing.connection_pool
        self._timeout = settings.timeout
        self._lock = asyncio.Lock()

    async def _take(self) -> aio.DriverConnection:
        if self._existing.single_connection_client:
            await self._lock.acquire()
            return await self._take_single()
        try:
            return await self._pool.get_connection()
        except sync.FAILURES as error:
            raise sync.opening_error(error) from error

    async def _take_single(self) -> aio.DriverConnection:
        try:
            await self._existing.initialize()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, sync.FAILURES):
                raise sync.opening_error(error) from error
            raise
        return cast("aio.DriverConnection", self._existing.connection)

    async def _read(self, connection: aio.DriverConnection, count: int) -> Replies:
        read = partial(connection.read_response, disable_decoding=True)
        try:
            async with asyncio.timeout(self._timeout):
                return await aio.read_replies(read, count)
        except TimeoutError as error:
            raise TimeoutError("Timeout: no reply in time") from error

    async def _keep(self, connection: aio.DriverConnection) -> None:
        if connection is self._existing.connection:
            self._lock.release()
        else:
            await self._pool.release(connection)

    async def _discard(self, connection: aio.DriverConnection) -> None:
        await connection.disconnect(nowait=True)
        await self._keep(connection)


def _check(existing: object, wanted: type, client: str) -> None:
    if not isinstance(existing, wanted):
        kind = type(existing)
        raise UsageError(
            f"{client} works on a {_named(wanted)}, not on a {_named(kind)}; use the other kind of client"
            if kind in (sync.Redis, aio.Redis)
            else f"{client} works on a URL or a {_named(wanted)}, not on a {_named(kind)}"
        )


def _named(kind: type) -> str:
    return f"{kind.__module__.removesuffix('.client')}.{kind.__qualname__}".removeprefix("builtins.")
