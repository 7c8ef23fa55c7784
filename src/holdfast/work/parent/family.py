"""The children of one parent: forked where one is missing, buried where one has died, all told the same.

They are forked in the thread of the parent's selector and nowhere else, so that none is forked while another thread holds
a lock.
"""

import logging
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from random import uniform
from time import monotonic
from typing import Final

from holdfast.work import signals
from holdfast.work.parent.child import Body, Place, Rolling, Slot, become
from holdfast.work.parent.guard import Guard
from holdfast.work.processes import stop_group
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import UNWIND, how_ended
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")

LATE: Final = 1.0  # seconds


class Family:
    """`settings.workers` places for children, each of which runs `body`; their leases are the guard's.

    What is registered in `selector` comes with the function to call when it is ready; children close all of that, and the
    descriptor `wake`. `is_last` says whether nobody comes after a child that ended with a status.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        store: StoreChoice,
        body: Body,
        guard: Guard,
        selector: selectors.BaseSelector,
        wake: int,
        is_last: Callable[[Slot, int], bool],
    ) -> None:
        self._settings = settings
        self._store = store
        self._body = body
        self._guard = guard
        self._selector = selector
        self._wake = wake
        self._is_last = is_last
        self._rolling = Rolling()
        self.slots = [self._make_slot(number) for number in range(settings.workers)]

    def living(self) -> list[Slot]:
        """The places with a child."""
        return [slot for slot in self.slots if slot.pid]

    def missing(self) -> list[Slot]:
        """The places for which a child is to be forked, now or later."""
        return [slot for slot in self.slots if slot.awaits_child]

    def due(self, *, fills: bool) -> float:
        """When to call `bury` next, or if `fills` also `fill`, on the monotonic clock."""
        # One that has let go of its pipe ends, but nobody tells when, where no signal is heard.
        ends = monotonic() + LATE if any(slot.pipe is None for slot in self.living()) else inf
        if not fills:
            return ends
        return min([ends, self._rolling.due(), *(slot.fork_at for slot in self.missing())])

    def fill(self) -> None:
        """Fork where a child is missing, and ask the next one to go in a rolling restart."""
        for slot in self.missing():
            if slot.fork_at <= monotonic():
                self._fork(slot)
        old = self._rolling.step(self.slots)
        if old is not None:
            log.info("worker %s (process %d) is replaced after its jobs", old.name, old.pid)
            old.retire()

    def restart(self) -> None:
        """Replace all running children, one at a time, each after its jobs."""
        self._rolling.begin()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every child."""
        for slot in self.living():
            slot.signal(number)

    def unwind(self, cause: str) -> None:
        """Order every child to stop its jobs and end, because of the signal `cause`; the jobs are requeued at no cost."""
        for slot in self.living():
            slot.preempt(cause)
            slot.signal(UNWIND)

    def kill(self, cause: str) -> None:
        """Kill every child; its jobs are requeued at no cost, because of `cause`."""
        for slot in self.living():
            slot.preempt(cause)
            slot.kill()

    def pause(self, pause: bool) -> None:
        """Have no more jobs taken, or go on."""
        for slot in self.slots:
            slot.slate.paused = pause
            slot.poke()

    def bury(self, *, replace: bool) -> None:
        """See to those that have died; `replace`: others are to come after them."""
        for slot in self.living():
            self._look_after(slot, replace)

    def end(self, cause: str) -> None:
        """Leave no child behind; those there are are killed because of `cause`."""
        self.kill(cause or "the end of its worker")
        for slot in self.living():
            with suppress(ChildProcessError):
                os.waitpid(slot.pid, 0)
            self._bury(slot)

    def close(self) -> None:
        """Give the slates back."""
        for slot in self.slots:
            slot.slate.close()

    def _make_slot(self, number: int) -> Slot:
        name, delay = self._settings.worker_name(number), uniform(0.0, self._settings.max_startup_interval)
        return Slot(name, number, self._settings.concurrency, monotonic() + delay)

    def _fork(self, slot: Slot) -> None:
        _flush()
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            self._cannot_fork(slot, error)
            return
        ours.setblocking(False)
        place = Place(
            slot.name, slot.number, slot.slate, theirs, os.getpid(), slot.told(self._settings), self._store
        )
        with theirs:
            # A signal between the fork and the child's own handlers would be taken for one to the parent.
            signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
            try:
                pid = os.fork()
                if pid == 0:
                    become(place, self._body, [ours.fileno(), *self._descriptors()])
            except OSError as error:
                ours.close()
                self._cannot_fork(slot, error)
                return
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        slot.settle(pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, partial(self._hear, slot, ours))
        log.info("worker %s started as process %d", slot.name, pid)

    def _cannot_fork(self, slot: Slot, error: OSError) -> None:
        log.error("worker %s cannot be started, trying again in %.1f s: %s", slot.name, slot.put_off(), error)

    def _descriptors(self) -> list[int]:
        """What of the parent's a child must close; an end of a pipe kept open would hide the parent's death."""
        registered = [key.fd for key in self._selector.get_map().values()]
        selector = getattr(self._selector, "fileno", None)
        return [*registered, self._wake, *([selector()] if selector else [])]

    def _hear(self, slot: Slot, pipe: socket.socket) -> None:
        try:
            heard = pipe.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if heard:
            self._guard.learn(slot)
        else:
            # The child is ending; that it has ended is told by its signal.
            self._selector.unregister(pipe)
            pipe.close()
            slot.pipe = None

    def _look_after(self, slot: Slot, replace: bool) -> None:
        status: int | None
        try:
            pid, status = os.waitpid(slot.pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            pid, status = slot.pid, None  # somebody else has taken its status
        if pid and status is not None and os.WIFSTOPPED(status):
            log.warning("worker %s (process %d) is halted by a signal until CONT", slot.name, pid)
        elif pid:
            known = None if status is None else os.waitstatus_to_exitcode(status)
            slot.had_jobs = bool(slot.slate.read_all())
            stopped, code = self._bury(slot, known), known or 0
            slot.is_finished = self._is_last(slot, code) and not slot.had_jobs
            _say_end(slot, pid, code, stopped, replace=replace and not slot.is_finished)

    def _bury(self, slot: Slot, code: int | None = None) -> bool:
        """Take over the leases of this slot's dead child. Returns whether we had killed it because of its job."""
        for process in slot.slate.processes():
            stop_group(process)
        stopped = self._guard.owe(slot, *slot.release_of(code))
        if slot.pipe is not None:
            self._selector.unregister(slot.pipe)
        slot.leave()
        return stopped


def _say_end(slot: Slot, pid: int, code: int, stopped: bool, *, replace: bool) -> None:
    if not replace:
        log.info("worker %s (process %d) %s", slot.name, pid, how_ended(code) if code else "has ended")
        return
    how, was_meant, pause = slot.replace(code, stopped)
    level = logging.INFO if was_meant else logging.WARNING
    log.log(level, "worker %s (process %d) %s; it is replaced in %.1f s", slot.name, pid, how, pause)


def _flush() -> None:
    """What is written but not out yet would come out of every child again."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
