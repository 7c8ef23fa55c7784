"""Children with many slots, a thread each: the `thread` pool.

A thread cannot be ended from outside. A job that lost its lease sees that by `job.cancelled`, and has Terminated raised in it half a
second later; one that is a coroutine is cancelled. Either way its slot is given to another thread at once.
"""

import asyncio
import ctypes
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from queue import SimpleQueue
from typing import Any, Final

from holdfast.worker.forking.server import ForkServer
from holdfast.worker.loop import BlockingSlot
from holdfast.worker.performing.chain import beside_the_loop
from holdfast.worker.performing.surroundings import Surroundings
from holdfast.worker.pools.blocking import work_blocking
from holdfast.worker.process_state import run_on
from holdfast.worker.processes import thread_lives
from holdfast.worker.signals import Stop, Terminated, start_without_signals, worker_handlers
from holdfast.worker.supervisor.child import ChildPlace


def body(place: ChildPlace, around: Surroundings) -> bool:
    """Work in a forked child until stopped. Return whether it is used up."""
    forking = ForkServer(place.store, place.settings, around, place.pipe.fileno())
    stop = Stop()
    handlers = worker_handlers(stop, place.settings.debugger)
    return work_blocking(place, around, Threads(), stop, handlers, forking)


GRACE: Final = 0.5
"""Seconds in which a job that lost its lease can check `job.cancelled`, before it is interrupted."""


class Hand:
    """One thread of a crew. It has an event loop of its own, for jobs that are `async def`."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._number = threading.get_native_id()
        self._slot: BlockingSlot | None = None
        self._lock = threading.Lock()
        self._runner: asyncio.Runner | None = None
        self._task: asyncio.Task[Any] | None = None
        self._unwinds = False

    @property
    def has_died(self) -> bool:
        """Whether its thread has ended without coming back, as code in C can end it; Python itself takes it for alive."""
        return not thread_lives(self._number)

    def work(self, slot: BlockingSlot, work: Callable[[], None]) -> None:
        """Do `work` for a slot in this thread. An exception raised in it for this slot does not reach later work."""
        self._slot = slot
        try:
            # Each job in a context of its own: what one sets there does not reach the next one.
            if not self._unwinds:
                Context().run(work)
        finally:
            self._leave(slot)

    def _leave(self, slot: BlockingSlot) -> None:
        while self._slot is not None or not slot.is_over:
            try:
                with self._lock:
                    self._slot = None
                    _raise_in(self.thread, None)
                    slot.is_over = True
            except Terminated:
                pass  # it came just now, when the job had ended

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine to its end, here."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            return run_on(self._runner, self._watched(coroutine))
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
        """Cancel the coroutine that runs here, from another thread. Return whether there was one."""
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
            self.terminate(self._slot)

    def terminate(self, slot: BlockingSlot | None) -> None:
        """Raise Terminated in the job of a slot, at the next Python instruction of its thread; code in C is not interrupted."""
        with self._lock:
            if slot is not None and self._slot is slot:
                _raise_in(self.thread, Terminated)

    def close(self) -> None:
        """End the event loop; in the thread itself."""
        if self._runner is not None:
            with suppress(OSError):  # a job closed its descriptors
                self._runner.close()


class Threads:
    """A crew of threads. There are as many as ever worked at once; one that never ends its job is not waited for."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[BlockingSlot, Callable[[], None]] | None] = SimpleQueue()
        self._here = threading.local()
        self._lock = threading.Lock()
        self._free = 0
        self._count = 0

    def start(self, slot: BlockingSlot, work: Callable[[], None]) -> None:
        """Have a thread do `work`."""
        with self._lock:
            has_free = self._free > 0
            self._free -= has_free
        if not has_free:
            self._count += 1
            threading.Thread(target=self._perform, name=f"holdfast-job-{self._count}", daemon=True).start()
        self._work.put((slot, work))

    def give_way(self) -> None:
        """Do nothing: threads run by themselves."""

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Drive a coroutine on the event loop of this thread."""
        return self._here.hand.run_coroutine(coroutine)

    lift = staticmethod(beside_the_loop)

    def stop(self, slot: BlockingSlot) -> None:
        """Cancel a coroutine. Other code has a moment to see `job.cancelled` and end by itself; then Terminated is raised in it."""
        if slot.hand is not None and not slot.hand.cancel():
            later = threading.Timer(GRACE, slot.hand.terminate, [slot])
            later.daemon, later.name = True, "holdfast-cancel"
            start_without_signals(later)

    def unwind(self, slot: BlockingSlot) -> None:
        """Raise Terminated in the job of a slot, as soon as its thread runs Python code; one that has not begun never begins."""
        if slot.hand is None:
            slot.is_over = True
        elif not slot.is_over:
            slot.hand.unwind()

    def is_cut_off(self, *own: int) -> bool:
        """Return False: the loop finds it when it looks at its process."""
        return False

    def has_died(self, slot: BlockingSlot) -> bool:
        """Whether the thread of a slot has ended with its job."""
        return slot.hand is not None and slot.hand.has_died

    def close(self) -> None:
        """End the threads that are free; the others, when their jobs end."""
        for _ in range(self._count):
            self._work.put(None)

    def _perform(self) -> None:
        hand = self._here.hand = Hand()
        try:
            while (given := self._work.get()) is not None:
                slot, work = given
                slot.hand = hand
                if not slot.is_over:
                    hand.work(slot, work)
                with self._lock:
                    self._free += 1
        except Terminated:
            pass  # it came when the job had just ended
        finally:
            hand.close()


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Have a thread raise `error` at its next Python instruction; None takes back what it has not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
