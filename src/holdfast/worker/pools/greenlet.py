"""The `gevent` pool: children with many slots, a greenlet each.

An event loop counts as running for its whole thread, and so for all greenlets there: each with a loop of its own would
be refused, and blocking calls of the others would be taken for calls inside of one.

The loop runs in the main greenlet. A job that lost its lease is killed where it waits; one that hogs the process is not
reached, as nothing else is then.
"""

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

from holdfast.code.middleware import Perform
from holdfast.worker.forking.server import ForkServer
from holdfast.worker.greenlets import prepare_child, thrown, wait_natively
from holdfast.worker.loop import BlockingSlot
from holdfast.worker.performing.surroundings import Surroundings
from holdfast.worker.pools.blocking import work_blocking
from holdfast.worker.signals import UNWIND, Stop, Terminated, worker_handlers
from holdfast.worker.supervisor.child import ChildPlace

gevent: Any = importlib.import_module("gevent")
importlib.import_module("gevent.event")
importlib.import_module("gevent.lock")


class Driver:
    """Drives coroutines for greenlets that wait for them, on an event loop in a thread. The thread begins with the first."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Any = None
        self._beginning = gevent.lock.Semaphore(1)
        self._hub = gevent.get_hub()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end, while other greenlets run. When this greenlet is killed, the coroutine is cancelled."""
        loop, ended = self._begun(), _Signal()
        driven = _DrivenCoroutine(coroutine, ended.send)
        # The context of this greenlet, with the current job in it, is copied for the coroutine.
        loop.call_soon_threadsafe(lambda: loop.create_task(driven.run()))
        try:
            ended.wait()
        except BaseException:
            loop.call_soon_threadsafe(driven.cancel)
            # The job is over when its code is, whatever it does about that.
            ended.wait()
            raise
        finally:
            ended.close()
        if driven.error is not None:
            raise driven.error
        return driven.value

    def lift(self, method: Perform) -> Callable[[Any], Awaitable[Any]]:
        """Return plain code as a coroutine that performs it in a greenlet here: in another thread it could not use our client."""

        async def perform(job: Any) -> Any:
            call = _GreenletCall(asyncio.get_running_loop(), lambda: method(job))
            self._hub.loop.run_callback_threadsafe(call.start)
            try:
                return await asyncio.shield(call.outcome)
            except asyncio.CancelledError:
                self._hub.loop.run_callback_threadsafe(call.kill)
                with suppress(BaseException):
                    await call.outcome
                raise

        return perform

    def close(self) -> None:
        """Stop the loop; coroutines that have not ended are left where they are."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.wait(1.0)

    def _begun(self) -> asyncio.AbstractEventLoop:
        with self._beginning:
            if self._loop is None:
                begun, made = _Signal(), list[asyncio.AbstractEventLoop]()
                self._thread = gevent.get_hub().threadpool.spawn(_drive, made, begun.send)
                begun.wait()
                begun.close()
                self._loop = made[0]
        return self._loop


class _Signal:
    """Wakes greenlets of the thread that made it, from any thread.

    Locks and events of a patched standard library may switch to a greenlet of another thread, which is an error.
    """

    def __init__(self) -> None:
        self._sent = gevent.event.Event()
        self._watcher = gevent.get_hub().loop.async_()
        self._watcher.start(self._sent.set)

    def send(self) -> None:
        """Wake them; after `close` it does nothing."""
        with suppress(Exception):
            self._watcher.send()

    def wait(self) -> None:
        """Wait until it was sent."""
        self._sent.wait()

    def close(self) -> None:
        """Release what belongs to the hub."""
        self._watcher.stop()
        self._watcher.close()


class _GreenletCall:
    """A call of plain code in a greenlet, whose outcome a coroutine in another thread awaits."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], Any]) -> None:
        self.outcome: asyncio.Future[Any] = loop.create_future()
        self._loop = loop
        self._context = copy_context()
        self._call = call
        self._greenlet: Any = None

    def start(self) -> None:
        """Begin; in the thread of the greenlets."""
        self._greenlet = gevent.spawn(self._perform)

    def kill(self) -> None:
        """Kill the greenlet; in its thread."""
        self._greenlet.kill(Killed, block=False)
        if self._greenlet.ready():
            self._report(self.outcome.cancel)  # it had not begun, or has ended

    def _perform(self) -> None:
        try:
            value = self._context.run(self._call)
        except BaseException as error:
            # A future refuses StopIteration.
            failure = RuntimeError(str(error)) if isinstance(error, StopIteration) else error
            self._report(partial(self.outcome.set_exception, failure))
        else:
            self._report(partial(self.outcome.set_result, value))

    def _report(self, settle: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(lambda: self.outcome.done() or settle())


class _DrivenCoroutine:
    """One coroutine on the loop, and how it ended. Its methods run in the thread of the loop."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], ended: Callable[[], None]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._ended = ended
        self._coroutine = coroutine
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    async def run(self) -> None:
        """Await it. What it raises is kept: some of that, raised here, would end the loop as well."""
        self._task = asyncio.current_task()
        try:
            if self._is_cancelled:
                self._coroutine.close()
                raise asyncio.CancelledError
            self.value = await self._coroutine
        except BaseException as error:
            self.error = error
        finally:
            self._ended()

    def cancel(self) -> None:
        """Cancel it, whether it has begun or not."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()


def _drive(made: list[asyncio.AbstractEventLoop], begun: Callable[[], None]) -> None:
    # Made here: a loop waits in the thread that made it.
    loop = asyncio.new_event_loop()
    made.append(loop)
    begun()
    loop.run_forever()


class Killed(Terminated, gevent.GreenletExit):  # type: ignore[misc]
    """Raised in the greenlet of a job that must not continue. Nothing is recorded."""


def body(place: ChildPlace, around: Surroundings) -> bool:
    """Work in a forked child until stopped. Return whether it is used up."""
    forking = ForkServer(place.store, place.settings, around, place.pipe.fileno())
    prepare_child()
    stop = Stop()
    handlers = worker_handlers(stop)
    handlers[UNWIND] = thrown(handlers[UNWIND])
    return work_blocking(place, around, Greenlets(), stop, handlers, forking)


class Greenlets:
    """A crew of greenlets, one for each job. `greenlets` has the running ones by their jids."""

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
        """Let every greenlet run once that can: short jobs have ended then."""
        gevent.sleep(0)

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine in a thread beside, on the event loop of all."""
        return self._driver.run(coroutine)

    def lift(self, method: Perform) -> Callable[[Any], Awaitable[Any]]:
        """Return plain code as a coroutine that performs it in a greenlet."""
        return self._driver.lift(method)

    def stop(self, slot: BlockingSlot) -> None:
        """Kill the greenlet of a slot, if it has one."""
        if slot.hand is not None:
            slot.hand.kill(Killed, block=False)
        if slot.hand is None or slot.hand.ready():
            # It had not begun, and cannot note itself that it is over.
            slot.is_over = True
            self.greenlets.pop(slot.jid, None)

    unwind = stop

    def is_cut_off(self, *own: int) -> bool:
        """Whether a job closed one of these descriptors, or that on which all greenlets wait: the next wait would abort."""
        try:
            for descriptor in (*own, gevent.get_hub().loop.fileno()):
                os.fstat(descriptor)
        except OSError:
            wait_natively()
            return True
        return False

    def has_died(self, slot: BlockingSlot) -> bool:
        """Return False: what runs jobs here has a stack of its own, but no thread."""
        return False

    def close(self) -> None:
        """End the event loop; greenlets that still run are left where they are."""
        self._driver.close()
