"""Wait between two attempts, end a wait at the store early, and keep what belongs to one event loop.

A connection that is just closed stays blocked at the store until it looks, and a token may still be given to it.
Hence the half-close: the store ends its side when it has forgotten the wait.
"""

import asyncio
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from holdfast.errors import UsageError

PATIENCE: Final = 1.0  # seconds for a store to notice


def hold(seconds: float) -> None:
    """Block this thread; under gevent, this greenlet."""
    time.sleep(max(0.0, seconds))


def break_off(connection: socket.socket | None) -> None:
    """End a connection for whoever waits on it, in another thread or under the signal handler that calls this.

    It stays open until they close it: one that is closed under a wait would be waited on to the end.
    """
    with suppress(OSError, AttributeError):
        if connection is not None:
            connection.shutdown(socket.SHUT_RDWR)


def has_ended(connection: socket.socket) -> bool:
    """Whether a connection on which nothing is due has something to say: that it is over."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def hang_up(connection: socket.socket) -> None:
    """Say that no more will be sent, and read on until the store has hung up too, or does not in time."""
    try:
        connection.settimeout(PATIENCE)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    except (OSError, ValueError):
        pass  # it is gone already


async def hang_up_async(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The same on an event loop."""
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write_eof()
            while await reader.read(4096):
                pass
    except (OSError, RuntimeError, NotImplementedError, AttributeError):
        pass  # it is gone already (the driver has let go of it), or it is TLS, which knows no half-close


def let_go(writer: asyncio.StreamWriter | None) -> None:
    """Close a connection outside its event loop, which may be gone: nobody waits for its proper end."""
    transport: Any = None if writer is None else writer.transport
    loop: asyncio.AbstractEventLoop | None = getattr(transport, "_loop", None)
    if loop is not None and not loop.is_closed():
        transport.abort()
        return
    held: socket.socket | None = getattr(transport, "_sock", None)
    if held is not None:
        # Else it complains, when it is collected, that it was not closed, which needs its loop.
        transport._closing, transport._sock = True, None
        held.close()


async def heard_unless(event: asyncio.Event, listener: Any, seconds: float) -> tuple[str, bytes] | None:
    """What an async listener hears next, None when `event` is set before, or when nothing comes for so many seconds."""
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
    """The event loop that runs here. Raises UsageError without one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "no event loop runs here: an AsyncClient is used inside of one, as in asyncio.run(main()); "
            "a Client needs none"
        ) from None


def _nothing(_: object) -> None:
    pass


class PerLoop(Generic[T]):
    """One thing of its kind for each loop: `make` makes it when the loop first asks, `end` gets it when its loop is over."""

    def __init__(self, make: Callable[[], T], end: Callable[[T], None] = _nothing) -> None:
        self._make = make
        self._end = end
        self._things: dict[asyncio.AbstractEventLoop, T] = {}

    def here(self) -> T:
        """The thing of the running loop."""
        loop = running_loop()
        thing = self._things.get(loop)
        if thing is None:
            self._drop([other for other in list(self._things) if other.is_closed()])
            thing = self._things[loop] = self._make()
        return thing

    def drop(self) -> None:
        """End what belongs to loops that do not run."""
        self._drop([loop for loop in list(self._things) if not loop.is_running()])

    def _drop(self, loops: list[asyncio.AbstractEventLoop]) -> None:
        for loop in loops:
            thing = self._things.pop(loop, None)
            if thing is not None:
                self._end(thing)
