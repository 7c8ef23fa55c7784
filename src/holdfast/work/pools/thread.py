"""Children with many seats, a thread each: the `thread` pool. A child keeps its leases by one more thread.

A thread cannot be ended from outside. A job that lost its lease is told by `job.cancelled`, one that is a coroutine is
cancelled; either way its seat is given to another thread at once.
"""

import asyncio
import ctypes
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any

from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Around
from holdfast.work.pools.crew import BlockingSeat
from holdfast.work.pools.working import work_blocking
from holdfast.work.signals import Handlers, Stop, Terminated, worker_handlers


def body(place: Place, around: Around) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    stop = Stop()
    try:
        with Handlers(worker_handlers(stop, place.settings.debugger), stop.wake_fd):
            return work_blocking(place, around, Threads(), stop)
    finally:
        stop.close()


class Hand:
    """One thread of a crew. It has an event loop of its own, for jobs that are `async def`."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._runner: asyncio.Runner | None = None
        self._task: asyncio.Task[Any] | None = None
        self._unwinds = False

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine to its end, here."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            # The copy carries the current job into the coroutine.
            return self._runner.run(self._watched(coroutine), context=copy_context())
        except asyncio.CancelledError:
            if self._unwinds:
                raise Terminated from None
            raise

    async def _watched(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        self._task = asyncio.current_task()
        try:
            return await coroutine
        finally:
            self._task = None

    def cancel(self) -> bool:
        """Cancel the coroutine that is driven here, from another thread. Answers whether there was one."""
        task = self._task
        if task is None:
            return False
        try:
            task.get_loop().call_soon_threadsafe(task.cancel)
        except RuntimeError:
            return False  # its loop has just ended
        return True

    def unwind(self) -> None:
        """Raise Terminated in what is performed here, from another thread."""
        self._unwinds = True
        if not self.cancel():
            # It comes when the thread runs Python code again; code that waits in C is not reached.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self.thread), ctypes.py_object(Terminated)
            )

    def close(self) -> None:
        """End the event loop; in the thread itself."""
        if self._runner is not None:
            self._runner.close()


class Threads:
    """A crew of threads. There are as many as ever worked at once; one that never ends its job is not waited for."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[BlockingSeat, Callable[[], None]] | None] = SimpleQueue()
        self._here = threading.local()
        self._lock = threading.Lock()
        self._free = 0
        self._count = 0

    def start(self, seat: BlockingSeat, work: Callable[[], None]) -> None:
        """Have a thread do `work`."""
        with self._lock:
            has_free = self._free > 0
            self._free -= has_free
        if not has_free:
            self._count += 1
            threading.Thread(target=self._perform, name=f"holdfast-job-{self._count}", daemon=True).start()
        self._work.put((seat, work))

    def give_way(self) -> None:
        """Threads go on by themselves."""

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine on the event loop of this thread."""
        return self._here.hand.run_coroutine(coroutine)

    def stop(self, seat: BlockingSeat) -> None:
        """Cancel a coroutine; other code is told by `job.cancelled`."""
        if seat.hand is not None:
            seat.hand.cancel()

    def unwind(self, seat: BlockingSeat) -> None:
        """Raise Terminated in the job of a seat, as soon as its thread runs Python code."""
        if seat.hand is not None and not seat.is_over:
            seat.hand.unwind()

    def close(self) -> None:
        """End the threads that are free; the others, when their jobs end."""
        for _ in range(self._count):
            self._work.put(None)

    def _perform(self) -> None:
        hand = self._here.hand = Hand()
        try:
            while (given := self._work.get()) is not None:
                seat, work = given
                seat.hand = hand
                # Each job in a context of its own: what one sets there is none of the next one's business.
                Context().run(work)
                with self._lock:
                    self._free += 1
        except Terminated:
            pass  # it came when the job had just ended
        finally:
            hand.close()
