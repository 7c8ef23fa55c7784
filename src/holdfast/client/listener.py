"""Listen to channels of the store on a connection of its own, sync and async.

What is published is a hint: it reaches who listens at that moment and nobody else. A listener that lost its connection
comes back by itself, and what was published meanwhile is lost.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from math import inf
from threading import Event, Thread, current_thread, get_ident
from time import monotonic
from typing import Any, Final, TypedDict

from holdfast.client.opening import Source, source_of
from holdfast.errors import ConnectionLost, HoldfastError, UsageError
from holdfast.settings import check_list, check_text, check_timeout
from holdfast.wire.outage import ReconnectGate
from holdfast.wire.repeat import RetryTimer
from holdfast.wire.waiting import receive_unless

log = logging.getLogger("holdfast")

QUIET: Final = 30.0
"""Seconds without a message after which the store is asked whether it is still there."""

GLANCE: Final = 1.0
"""Seconds of one wait of a blocking listener."""


def nothing() -> None:
    """What happens when nobody wants to know."""


class Message(TypedDict):
    """What was published on a channel."""

    type: str
    channel: str
    data: str


class _Effort:
    """How hard to try: at first until a deadline, which may be never, and once it was heard for ever."""

    def __init__(self, deadline: float, gate: ReconnectGate) -> None:
        self._away = gate
        self._patience = RetryTimer(deadline, monotonic)
        self._gives_up = deadline < inf
        self._is_out = False

    def heard(self) -> None:
        """The subscription is active."""
        if self._is_out:
            level = logging.WARNING if self._away.report_recovery() else logging.INFO
            log.log(level, "the subscription works again; what was published meanwhile is lost")
        self._gives_up = self._is_out = False
        self._patience = RetryTimer(inf, monotonic)

    def lost(self, error: HoldfastError) -> float:
        """Seconds to wait before the next try. Raises `error` if there shall be none."""
        pause = self._patience.next_pause()
        if pause is None or (self._gives_up and not isinstance(error, ConnectionLost)):
            raise error
        if not self._gives_up and not self._is_out:
            if self._away.report_outage():
                log.warning("the subscription was lost (%s); trying again", error)
            self._is_out = True
        return pause


class ListenerBase:
    """What a listener of either colour is given."""

    def __init__(self, source: Source, channels: Sequence[str], deadline: float | None) -> None:
        self._source = source
        self._deadline = deadline
        self._wire: Any = None
        self.channels = [check_text("channel", channel) for channel in check_list("channels", channels)]
        if not all(self.channels) or not self.channels:
            raise UsageError("channels must name at least one, and none of them may be empty")
        self.on_active: Callable[[], object] = nothing
        """Called each time the subscription has become active."""
        self._begun_in = 0

    @property
    def _has_begun(self) -> bool:
        # What a process inherited over a fork is not its own.
        return self._begun_in == os.getpid()

    def _begin(self) -> tuple[Any, _Effort]:
        if self._has_begun:
            raise UsageError("this is listened to already: make another listener")
        self._reset()
        wire = self._wire = self._source.link.listener()
        self._begun_in = os.getpid()
        deadline = self._source.settings.deadline if self._deadline is None else self._deadline
        return wire, _Effort(deadline, self._source.shard.gate)

    def _reset(self) -> None:
        """Forget what an earlier listening left behind."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.channels)}>"


class Listener(ListenerBase):
    """Hears what is published on some channels, blocking; one thread listens, others may wait for it or end it.

    `database` is a `Client` or a `redis.Redis`; `channels` are names as the store has them. The first subscription is
    tried for `deadline` seconds, the client's when left out, infinity for ever. Raises UsageError.
    """

    def __init__(self, database: Any, channels: Sequence[str], *, deadline: float | None = None) -> None:
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
        the client; a connection that is lost later is made again and again.
        """
        wire, effort = self._begin()
        try:
            while not self._ending:
                try:
                    wire.subscribe(*self.channels)
                    effort.heard()
                    self._active.set()
                    self.on_active()
                    while not self._ending:
                        heard = self._next(wire)
                        if heard is not None:
                            yield _message(heard)
                        elif not self._ending:
                            # Whether anybody is there at the other end: the answer to this says it.
                            wire.subscribe(*self.channels)
                except HoldfastError as error:
                    self._active.clear()
                    if not self._ending:
                        self._woken.wait(effort.lost(error))
        finally:
            self._active.clear()
            wire.close()
            self._begun_in = 0

    def _next(self, wire: Any) -> tuple[str, bytes] | None:
        """What is heard next, None after some silence."""
        end = monotonic() + QUIET
        while not self._ending and (left := end - monotonic()) > 0:
            # A signal that came to another thread is handled by this one when it looks up.
            heard: tuple[str, bytes] | None = wire.receive(min(left, GLANCE))
            if heard is not None:
                return heard
        return None

    def _reset(self) -> None:
        self._active.clear()
        self._woken.clear()
        self._ending, self._thread = False, get_ident()

    def wait_until_listening(self, timeout: float | None = None) -> None:
        """Wait until the subscription is active, for at most `timeout` seconds. Raises TimeoutError."""
        if not self._active.wait(check_timeout(timeout)):
            raise TimeoutError("nobody listens in time")

    def unlisten(self) -> None:
        """End `listen`, from any thread or a signal handler; nothing happens when nobody listens."""
        if not self._has_begun:
            return
        self._ending = True
        if get_ident() != self._thread:
            # A signal handler may have interrupted this very wait, whose lock it would wait for.
            self._woken.set()
        self._wire.interrupt()


class AsyncListener(ListenerBase):
    """Hears what is published on some channels, on an event loop.

    `database` is an `AsyncClient` or a `redis.asyncio.Redis`; the rest is as with `Listener`. Raises UsageError.
    """

    def __init__(self, database: Any, channels: Sequence[str], *, deadline: float | None = None) -> None:
        super().__init__(source_of(database, awaited=True), channels, deadline)
        self._signals: tuple[object, asyncio.Event, asyncio.Event] | None = None

    @property
    def is_listening(self) -> bool:
        """Whether the subscription is active."""
        return self._has_begun and self._signals is not None and self._signals[1].is_set()

    async def listen(self) -> AsyncGenerator[Message]:
        """Yield each message, as a dict with `type`, `channel` and `data`, until `unlisten`; may be called again then.

        Raises ConnectionLost if the store cannot be listened to within the deadline, StoreUnsupported if it refuses
        the client; a connection that is lost later is made again and again.
        """
        wire, effort = self._begin()
        active, ending = self._of_this_loop()
        try:
            while not ending.is_set():
                try:
                    await wire.subscribe(*self.channels)
                    effort.heard()
                    active.set()
                    self.on_active()
                    while not ending.is_set():
                        heard = await receive_unless(ending, wire, QUIET)
                        if heard is not None:
                            yield _message(heard)
                        elif not ending.is_set():
                            await wire.subscribe(*self.channels)
                except HoldfastError as error:
                    active.clear()
                    pause = effort.lost(error)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(ending.wait(), pause)
        finally:
            active.clear()
            self._begun_in = 0
            await wire.close()

    def _reset(self) -> None:
        for event in self._of_this_loop():
            event.clear()

    async def wait_until_listening(self, timeout: float | None = None) -> None:
        """Wait until the subscription is active, for at most `timeout` seconds. Raises TimeoutError."""
        active, _ = self._of_this_loop()
        await asyncio.wait_for(active.wait(), check_timeout(timeout))

    def unlisten(self) -> None:
        """End `listen`, from any task of the loop; nothing happens when nobody listens."""
        if self._has_begun and self._signals is not None:
            self._signals[2].set()

    def _of_this_loop(self) -> tuple[asyncio.Event, asyncio.Event]:
        """Whether the subscription is active, and whether it shall end: an event belongs to one loop."""
        loop = asyncio.get_running_loop()
        if self._signals is None or self._signals[0] is not loop:
            self._signals = loop, asyncio.Event(), asyncio.Event()
        return self._signals[1:]


def _message(heard: tuple[str, bytes]) -> Message:
    channel, data = heard
    return {"type": "message", "channel": channel, "data": data.decode(errors="backslashreplace")}


LONGEST_END: Final = 30.0
"""Seconds for the callback that is under way when listening shall end."""


class InThread:
    """Runs `follow`, which listens with `listener` until that is told to end, in a thread of its own."""

    def __init__(self, listener: Listener, follow: Callable[[], object]) -> None:
        self._listener = listener
        self._follow = follow
        self._thread: Thread | None = None
        self._settled = Event()
        self._error: BaseException | None = None

    def start(self) -> None:
        """Begin; returns when the subscription is active. Raises what kept it from that."""
        if self._thread is not None and self._thread.is_alive():
            raise UsageError("this has been started already")
        self._settled.clear()
        self._error = None
        self._listener.on_active = self._settled.set
        self._thread = Thread(target=self._run, name=f"holdfast {self._listener!r}", daemon=True)
        self._thread.start()
        try:
            self._settled.wait()
        except BaseException:  # an interrupt: nobody would end the thread
            self.stop()
            raise
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End; returns when the thread has ended, which first comes to the end of a callback that it is in."""
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
    """The same in a task of the running loop."""

    def __init__(self, listener: AsyncListener, follow: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._listener = listener
        self._follow = follow
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; returns when the subscription is active. Raises what kept it from that."""
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
        """End; returns when the task has ended, which first comes to the end of a callback that it is in."""
        task, self._task = self._task, None
        self._listener.unlisten()
        if task is None or task is asyncio.current_task():
            return
        _, late = await asyncio.wait([task], timeout=LONGEST_END)
        for one in late:
            one.cancel()
