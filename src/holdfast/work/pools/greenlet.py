"""The `gevent` pool: children with many slots, a greenlet each.

An event loop counts as running for its whole thread, and so for all greenlets there: each with a loop of its own would
be refused, and blocking calls of the others would be taken for calls inside of one.

The loop runs in the main greenlet. A job that lost its lease is killed where it waits; one that hogs the process is not
reached, as nothing else is then.
"""

import asyncio
import importlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from threading import Event, Lock
from typing import Any

from holdfast.work.forking.forked import Forking
from holdfast.work.forking.server import ForkServer
from holdfast.work.greenlets import prepare_child, thrown
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Surroundings
from holdfast.work.pools.blocking import work_blocking
from holdfast.work.pools.slots import BlockingSlot
from holdfast.work.signals import UNWIND, Handlers, Stop, Terminated, worker_handlers

gevent: Any = importlib.import_module("gevent")


class Driver:
    """Drives coroutines for greenlets that wait for them. Its thread begins with the first."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Any = None
        self._beginning = Lock()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine to its end; other greenlets go on. When this greenlet is killed, the coroutine is cancelled."""
        loop, ride = self._begun(), _DrivenCoroutine(coroutine)
        # The context of this greenlet, with the current job in it, goes along.
        told = asyncio.run_coroutine_threadsafe(ride.go(), loop)
        try:
            value, error = told.result()
        except BaseException:
            loop.call_soon_threadsafe(ride.cancel)
            # The job is over when its code is, whatever it does about that.
            ride.ended.wait()
            raise
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """End the loop; coroutines that go on are left where they are."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.wait(1.0)

    def _begun(self) -> asyncio.AbstractEventLoop:
        with self._beginning:
            if self._loop is None:
                begins: Future[asyncio.AbstractEventLoop] = Future()
                self._thread = gevent.get_hub().threadpool.spawn(_drive, begins)
                self._loop = begins.result()
        return self._loop


class _DrivenCoroutine:
    """One coroutine on the loop; all but `ended` belongs to the loop's thread."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.ended = Event()
        self._coroutine = coroutine
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    async def go(self) -> tuple[Any, BaseException | None]:
        """What it returned, or raised; some of that, raised here, would end the loop as well."""
        self._task = asyncio.current_task()
        try:
            if self._is_cancelled:
                self._coroutine.close()
                raise asyncio.CancelledError
            return await self._coroutine, None
        except BaseException as error:
            return None, error
        finally:
            self.ended.set()

    def cancel(self) -> None:
        """Cancel it, whether it has begun or not."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()


def _drive(begins: Future[asyncio.AbstractEventLoop]) -> None:
    # Made here: a loop waits in the thread that made it.
    loop = asyncio.new_event_loop()
    begins.set_result(loop)
    loop.run_forever()


class Killed(Terminated, gevent.GreenletExit):  # type: ignore[misc]
    """Raised in the greenlet of a job that must not go on. Nothing is recorded."""


def body(place: Place, around: Surroundings) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    forking = ForkServer(Forking(place.store, place.settings, around), around, [place.pipe.fileno()])
    prepare_child()
    stop = Stop()
    handlers = worker_handlers(stop)
    handlers[UNWIND] = thrown(handlers[UNWIND])
    if place.order is not None:
        handlers |= place.order.handlers(stop.request)
    try:
        with Handlers(handlers, stop.wake_fd):
            return work_blocking(place, around, Greenlets(), stop, forking)
    finally:
        stop.close()


class Greenlets:
    """A crew of greenlets, one for each job. `greenlets` has those under way by their jids."""

    def __init__(self) -> None:
        self.greenlets: dict[str, Any] = {}
        self._driver = Driver()

    def start(self, slot: BlockingSlot, work: Callable[[], None]) -> None:
        """Have a greenlet do `work`."""

        def perform() -> None:
            try:
                work()
            finally:
                if self.greenlets.get(slot.jid) is slot.hand:
                    del self.greenlets[slot.jid]

        slot.hand = self.greenlets[slot.jid] = gevent.spawn(perform)

    def give_way(self) -> None:
        """Let every greenlet go on once that can: short jobs have ended then."""
        gevent.sleep(0)

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine in a thread beside, on the event loop of all."""
        return self._driver.run(coroutine)

    def stop(self, slot: BlockingSlot) -> None:
        """Kill the greenlet of a slot, if it has one."""
        if slot.hand is not None:
            slot.hand.kill(Killed, block=False)
        if slot.hand is None or slot.hand.ready():
            # It had not begun: nobody but us can say that it is over.
            slot.is_over = True
            self.greenlets.pop(slot.jid, None)

    unwind = stop

    def close(self) -> None:
        """End what is beside the greenlets; those that go on are left where they are."""
        self._driver.close()
