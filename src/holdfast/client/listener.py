"""Listen to channels of the store on a connection of its own, sync and async.

A published message reaches those that listen at that moment. A listener that lost its connection
reconnects by itself, and what was published meanwhile is lost.
"""

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, closing, suppress
from math import inf
from threading import Event, Thread, current_thread, get_ident
from time import monotonic
from typing import TYPE_CHECKING, Final, Generic, TypedDict, TypeVar

from holdfast.client.opening import StoreSource, source_of
from holdfast.code.steps import Coro
from holdfast.errors import ConnectionLost, HoldfastError, UsageError
from holdfast.settings import check_list, check_text, check_timeout
from holdfast.wire.outage import ReconnectGate, log_outage, log_recovery
from holdfast.wire.repeat import RetryTimer
from holdfast.wire.waiting import receive_unless

if TYPE_CHECKING:
    from holdfast.wire import aio, sync

log = logging.getLogger("holdfast")
W = TypeVar("W")
"""The listener of one link."""

QUIET: Final = 30.0
"""Seconds without a message after which the connection is checked."""

GLANCE: Final = 1.0
"""Seconds of one wait of a sync listener."""


def nothing() -> None:
    """Do nothing: the default of `on_active`."""


class Message(TypedDict):
    """A message that was published on a channel."""

    type: str
    channel: str
    data: str


class _Retries:
    """When to subscribe again: until a deadline at first, which may be infinity, and without end after a success."""

    def __init__(self, deadline: float, gate: ReconnectGate) -> None:
        self._gate = gate
        self._patience = RetryTimer(deadline, monotonic)
        self._gives_up = deadline < inf
        self._is_out = False

    def active(self) -> None:
        """Note that the subscription is active."""
        if self._is_out:
            level = logging.WARNING if self._gate.is_reported else logging.INFO
            log_recovery(self._gate)
            log.log(level, "the subscription is active again; events published meanwhile are lost")
        self._gives_up = self._is_out = False
        self._patience = RetryTimer(inf, monotonic)

    def lost(self, error: HoldfastError) -> float:
        """Return the seconds to wait before the next attempt. Raises `error` if there is none."""
        pause = self._patience.next_pause()
        if pause is None or (self._gives_up and not isinstance(error, ConnectionLost)):
            raise error
        if not self._gives_up and not self._is_out:
            log_outage(self._gate, error)
            self._is_out = True
        return pause


class ListenerBase(Generic[W]):
    """The base of both listeners."""

    def __init__(self, source: StoreSource, channels: Sequence[str], deadline: float | None) -> None:
        self._source = source
        self._deadline = deadline
        self._wire: W | None = None
        self.channels = [check_text("channel", channel) for channel in check_list("channels", channels)]
        if not all(self.channels) or not self.channels:
            raise UsageError("channels must have at least one name, and no empty one")
        self.on_active: Callable[[], object] = nothing
        """Called each time the subscription has become active."""
        self._begun_in = 0

    @property
    def _has_begun(self) -> bool:
        # A forked process inherits a listener that is not its own.
        return self._begun_in == os.getpid()

    def _begin(self) -> tuple[W, _Retries]:
        if self._has_begun:
            raise UsageError("this listener is in use already; create another one")
        self._reset()
        wire: W = self._source.link.listener()
        self._wire = wire
        self._begun_in = os.getpid()
        deadline = self._source.settings.deadline if self._deadline is None else self._deadline
        return wire, _Retries(deadline, self._source.shard.gate)

    def _reset(self) -> None:
        """Clear the state of an earlier `listen`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.channels)}>"


class Listener(ListenerBase["sync.Listener"]):
    """A sync listener of some channels; one thread listens, others may wait for it or end it.

    `database` is a `Client` or a `redis.Redis`; `channels` are names as the store has them. The first subscription is
    tried for `deadline` seconds (default: the client's), infinity for no end. Raises UsageError.
    """

    def __init__(self, database: object, channels: Sequence[str], *, deadline: float | None = None) -> None:
        super().__init__(source_of(database, awaited=False), channels, deadline)
        self._active, self._woken = Event(), Event()
        self._ending, self._thread = False, 0

    @property
    def is_listening(self) -> bool:
        """Whether the subscription is active."""
        return self._has_begun and self._active.is_set()

    def listen(self) -> Generator[Message]:
        """Yield each message, as a dict with `type`, `channel` and `data`, until `unlisten`; may be called again then.

        Raises ConnectionLost if the store cannot be listened to within the deadline, StoreUnsupported if it refuses
        the client; a connection that is lost later is restored, however long that takes.
        """
        wire, retries = self._begin()
        try:
            while not self._ending:
                try:
                    wire.subscribe(*self.channels)
                    retries.active()
                    self._active.set()
                    self.on_active()
                    while not self._ending:
                        received = self._next(wire)
                        if received is not None:
                            yield _message(received)
                        elif not self._ending:
                            # This fails if the connection is lost.
                            wire.subscribe(*self.channels)
                except HoldfastError as error:
                    self._active.clear()
                    if not self._ending:
                        self._woken.wait(retries.lost(error))
        finally:
            self._active.clear()
            wire.close()
            self._begun_in = 0

    def for_each(self, call: Callable[[Message], object], failed: Callable[[Message], object]) -> None:
        """Listen, and call `call` with each message; `failed`, in an exception handler, if that raises."""
        with closing(self.listen()) as messages:
            for message in messages:
                try:
                    call(message)
                except Exception:
                    failed(message)

    def _next(self, wire: "sync.Listener") -> tuple[str, bytes] | None:
        """Return the next message, None after QUIET seconds."""
        end = monotonic() + QUIET
        while not self._ending and (left := end - monotonic()) > 0:
            # A signal that came to another thread is handled in this one between two waits.
            received = wire.receive(min(left, GLANCE))
            if received is not None:
                return received
        return None

    def _reset(self) -> None:
        self._active.clear()
        self._woken.clear()
        self._ending, self._thread = False, get_ident()

    def wait_until_listening(self, timeout: float | None = None) -> None:
        """Wait until the subscription is active, for at most `timeout` seconds. Raises TimeoutError."""
        if not self._active.wait(check_timeout(timeout)):
            raise TimeoutError("the subscription was not active in time")

    def unlisten(self) -> None:
        """End `listen`, from any thread or a signal handler; without a `listen` nothing happens."""
        if not self._has_begun:
            return
        self._ending = True
        if get_ident() != self._thread:
            # A signal handler may have interrupted the wait on this event, whose lock it would wait for.
            self._woken.set()
        if self._wire is not None:
            self._wire.interrupt()


class AsyncListener(ListenerBase["aio.AsyncListener"]):
    """An async listener of some channels.

    `database` is an `AsyncClient` or a `redis.asyncio.Redis`; otherwise as `Listener`. Raises UsageError.
    """

    _wire: "aio.AsyncListener | None"

    def __init__(self, database: object, channels: Sequence[str], *, deadline: float | None = None) -> None:
        super().__init__(source_of(database, awaited=True), channels, deadline)
        self._signals: tuple[object, asyncio.Event, asyncio.Event] | None = None

    @property
    def is_listening(self) -> bool:
        """Whether the subscription is active."""
        return self._has_begun and self._signals is not None and self._signals[1].is_set()

    async def listen(self) -> AsyncGenerator[Message]:
        """Yield each message, as a dict with `type`, `channel` and `data`, until `unlisten`; may be called again then.

        Raises ConnectionLost if the store cannot be listened to within the deadline, StoreUnsupported if it refuses
        the client; a connection that is lost later is restored, however long that takes.
        """
        wire, retries = self._begin()
        active, ending = self._of_this_loop()
        try:
            while not ending.is_set():
                try:
                    await wire.subscribe(*self.channels)
                    retries.active()
                    active.set()
                    self.on_active()
                    while not ending.is_set():
                        received = await receive_unless(ending, wire, QUIET)
                        if received is not None:
                            yield _message(received)
                        elif not ending.is_set():
                            await wire.subscribe(*self.channels)
                except HoldfastError as error:
                    active.clear()
                    pause = retries.lost(error)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(ending.wait(), pause)
        finally:
            active.clear()
            self._begun_in = 0
            await wire.close()

    async def for_each(self, call: Callable[[Message], object], failed: Callable[[Message], object]) -> None:
        """Listen, and call `call` with each message; `failed`, in an exception handler, if that raises."""
        async with aclosing(self.listen()) as messages:
            async for message in messages:
                try:
                    result = call(message)
                    if inspect.isawaitable(result):
                        await result
                except Exception:
                    failed(message)

    def _reset(self) -> None:
        for event in self._of_this_loop():
            event.clear()

    async def wait_until_listening(self, timeout: float | None = None) -> None:
        """Wait until the subscription is active, for at most `timeout` seconds. Raises TimeoutError."""
        active, _ = self._of_this_loop()
        await asyncio.wait_for(active.wait(), check_timeout(timeout))

    def unlisten(self) -> None:
        """End `listen`, from any task of the loop; without a `listen` nothing happens."""
        if self._has_begun and self._signals is not None:
            self._signals[2].set()

    def _of_this_loop(self) -> tuple[asyncio.Event, asyncio.Event]:
        """Return the events of this loop: the subscription is active, and it has to end."""
        loop = asyncio.get_running_loop()
        if self._signals is None or self._signals[0] is not loop:
            self._signals = loop, asyncio.Event(), asyncio.Event()
        return self._signals[1:]


def _message(received: tuple[str, bytes]) -> Message:
    channel, data = received
    return {"type": "message", "channel": channel, "data": data.decode(errors="backslashreplace")}


LONGEST_END: Final = 30.0
"""Seconds in which a running callback has to end when listening ends."""


class InThread:
    """Runs `follow`, which listens with `listener` until that ends, in a thread of its own."""

    def __init__(self, listener: Listener, follow: Callable[[], object]) -> None:
        self._listener = listener
        self._follow = follow
        self._thread: Thread | None = None
        self._settled = Event()
        self._error: BaseException | None = None

    def start(self) -> None:
        """Begin; return when the subscription is active. Raises the error that prevents it."""
        if self._thread is not None and self._thread.is_alive():
            raise UsageError("this has been started already")
        self._settled.clear()
        self._error = None
        self._listener.on_active = self._settled.set
        self._thread = Thread(target=self._run, name=f"holdfast {self._listener!r}", daemon=True)
        self._thread.start()
        try:
            self._settled.wait()
        except BaseException:  # an interrupt: nothing else would end the thread
            self.stop()
            raise
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End; return when the thread has ended, which first finishes a running callback."""
        thread, self._thread = self._thread, None
        self._listener.unlisten()
        if thread is not None and thread is not current_thread():
            thread.join(LONGEST_END)

    def _run(self) -> None:
        try:
            self._follow()
        except BaseException as error:
            if self._settled.is_set():
                log.exception("listening has ended")
            self._error = error
        finally:
            self._settled.set()


class InTask:
    """Runs `follow` in a task of the running loop."""

    def __init__(self, listener: AsyncListener, follow: Callable[[], Coro[None]]) -> None:
        self._listener = listener
        self._follow = follow
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; return when the subscription is active. Raises the error that prevents it."""
        if self._task is not None and not self._task.done():
            raise UsageError("this has been started already")
        settled = asyncio.Event()
        self._listener.on_active = settled.set
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(lambda _: settled.set())
        try:
            await settled.wait()
        except BaseException:
            self._task.cancel()
            raise
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """End; return when the task has ended, which first finishes a running callback."""
        task, self._task = self._task, None
        self._listener.unlisten()
        if task is None or task is asyncio.current_task():
            return
        _, late = await asyncio.wait([task], timeout=LONGEST_END)
        for one in late:
            one.cancel()
