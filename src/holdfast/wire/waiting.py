"""Pauses, early ends of blocking waits, and objects that belong to one event loop.

The store notices a closed connection late, and may still send a wake-up to it, which would be lost. Therefore a wait
ends with a half-close: the store closes its side after it has removed the wait.
"""

import asyncio
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from holdfast.errors import UsageError

CLOSE_TIMEOUT: Final = 1.0  # seconds for the store to close its side


def sleep(seconds: float) -> None:
    """Block this thread; under gevent, this greenlet."""
    time.sleep(max(0.0, seconds))


def shut_down(connection: socket.socket | None) -> None:
    """Shut a connection down, so that a wait on it ends in another thread, or under a signal handler.

    The waiting code closes it. Closing it here would not end the wait.
    """
    with suppress(OSError, AttributeError):
        if connection is not None:
            connection.shutdown(socket.SHUT_RDWR)


def has_ended(connection: socket.socket) -> bool:
    """Return whether the store has closed a connection on which no reply is expected."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def hang_up(connection: socket.socket) -> None:
    """Close our side, and read until the store has closed its side, for at most CLOSE_TIMEOUT seconds."""
    try:
        connection.settimeout(CLOSE_TIMEOUT)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    except (OSError, ValueError):
        pass  # closed already


async def hang_up_async(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Do the same on an event loop."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT):
            writer.write_eof()
            while await reader.read(4096):
                pass
    except (OSError, RuntimeError, NotImplementedError, AttributeError):
        pass  # closed already by the driver, or TLS, which has no half-close


def close_transport(writer: asyncio.StreamWriter | None) -> None:
    """Close a connection without its event loop, which may be closed, and without waiting for the end."""
    transport: Any = None if writer is None else writer.transport
    loop: asyncio.AbstractEventLoop | None = getattr(transport, "_loop", None)
    if loop is not None and not loop.is_closed():
        transport.abort()
        return
    held: socket.socket | None = getattr(transport, "_sock", None)
    if held is not None:
        # Otherwise the transport warns when it is collected; closing it properly needs its loop.
        transport._closing, transport._sock = True, None
        held.close()


async def receive_unless(event: asyncio.Event, listener: Any, seconds: float) -> tuple[str, bytes] | None:
    """Return the next message of an async listener; None if `event` is set first, or after `seconds`."""
    receiving = asyncio.ensure_future(listener.receive(seconds))
    setting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((receiving, setting), return_when=asyncio.FIRST_COMPLETED)
        return receiving.result() if receiving.done() else None
    finally:
        receiving.cancel()
        setting.cancel()


T = TypeVar("T")


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop. Raises UsageError if there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "no event loop is running: use an AsyncClient inside one, as in asyncio.run(main()), "
            "or use a Client"
        ) from None


def _nothing(_: object) -> None:
    pass


class PerLoop(Generic[T]):
    """One object for each event loop: `make` makes it at the first use, `end` gets it after its loop was closed."""

    def __init__(self, make: Callable[[], T], end: Callable[[T], None] = _nothing) -> None:
        self._make = make
        self._end = end
        self._found: dict[asyncio.AbstractEventLoop, T] = {}

    def here(self) -> T:
        """Return the object of the running loop."""
        loop = running_loop()
        found = self._found.get(loop)
        if found is None:
            self._drop([other for other in list(self._found) if other.is_closed()])
            found = self._found[loop] = self._make()
        return found

    def drop(self) -> None:
        """End the objects of loops that do not run."""
        self._drop([loop for loop in list(self._found) if not loop.is_running()])

    def _drop(self, loops: list[asyncio.AbstractEventLoop]) -> None:
        for loop in loops:
            found = self._found.pop(loop, None)
            if found is not None:
                self._end(found)
