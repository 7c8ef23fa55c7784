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
from holdfast.work.parent.child import Body, ChildProcess, Place, Rolling, become
from holdfast.work.parent.renewal import LeaseRenewal
from holdfast.work.processes import stop_group
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import UNWIND, how_ended
from holdfast.work.store_choice import StoreChoice

log = logging.getLogger("holdfast")

LATE: Final = 1.0  # seconds


class Children:
    """`settings.workers` places for children, each of which runs `body`; their leases are the guard's.

    What is registered in `selector` comes with the function to call when it is ready; children close all of that, and the
    descriptor `wake`. `is_last` says whether nobody comes after a child that ended with a status.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        store: StoreChoice,
        body: Body,
        guard: LeaseRenewal,
        selector: selectors.BaseSelector,
        wake: int,
        is_last: Callable[[ChildProcess, int], bool],
    ) -> None:
        self._settings = settings
        self._store = store
        self._body = body
        self._guard = guard
        self._selector = selector
        self._wake = wake
        self._is_last = is_last
        self._rolling = Rolling()
        self.children = [self._make_child(number) for number in range(settings.workers)]

    def living(self) -> list[ChildProcess]:
        """The places with a child."""
        return [child for child in self.children if child.pid]

    def missing(self) -> list[ChildProcess]:
        """The places for which a child is to be forked, now or later."""
        return [child for child in self.children if child.awaits_child]

    def due(self, *, fills: bool) -> float:
        """When to call `bury` next, or if `fills` also `fill`, on the monotonic clock."""
        # One that has let go of its pipe ends, but nobody tells when, where no signal is heard.
        ends = monotonic() + LATE if any(child.pipe is None for child in self.living()) else inf
        if not fills:
            return ends
        return min([ends, self._rolling.due(), *(child.fork_at for child in self.missing())])

    def fill(self) -> None:
        """Fork where a child is missing, and ask the next one to go in a rolling restart."""
        for child in self.missing():
            if child.fork_at <= monotonic():
                self._fork(child)
        old = self._rolling.step(self.children)
        if old is not None:
            log.info("worker %s (process %d) is replaced after its jobs", old.name, old.pid)
            old.retire()

    def restart(self) -> None:
        """Replace all running children, one at a time, each after its jobs."""
        self._rolling.begin()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every child."""
        for child in self.living():
            child.signal(number)

    def unwind(self, cause: str) -> None:
        """Order every child to stop its jobs and end, because of the signal `cause`; the jobs are requeued at no cost."""
        for child in self.living():
            child.preempt(cause)
            child.signal(UNWIND)

    def kill(self, cause: str) -> None:
        """Kill every child; its jobs are requeued at no cost, because of `cause`."""
        for child in self.living():
            child.preempt(cause)
            child.kill()

    def pause(self, pause: bool) -> None:
        """Have no more jobs taken, or go on."""
        for child in self.children:
            child.lease_table.paused = pause
            child.poke()

    def bury(self, *, replace: bool) -> None:
        """See to those that have died; `replace`: others are to come after them."""
        for child in self.living():
            self._look_after(child, replace)

    def end(self, cause: str) -> None:
        """Leave no child behind; those there are are killed because of `cause`."""
        self.kill(cause or "the end of its worker")
        for child in self.living():
            with suppress(ChildProcessError):
                os.waitpid(child.pid, 0)
            self._reap(child)

    def close(self) -> None:
        """Give the slates back."""
        for child in self.children:
            child.lease_table.close()

    def _make_child(self, number: int) -> ChildProcess:
        name, delay = self._settings.worker_name(number), uniform(0.0, self._settings.max_startup_interval)
        return ChildProcess(name, number, self._settings.concurrency, monotonic() + delay)

    def _fork(self, child: ChildProcess) -> None:
        _flush()
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            self._cannot_fork(child, error)
            return
        ours.setblocking(False)
        place = Place(
            child.name,
            child.number,
            child.lease_table,
            theirs,
            os.getpid(),
            child.told(self._settings),
            self._store,
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
                self._cannot_fork(child, error)
                return
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        child.settle(pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, partial(self._hear, child, ours))
        log.info("worker %s started as process %d", child.name, pid)

    def _cannot_fork(self, child: ChildProcess, error: OSError) -> None:
        log.error(
            "worker %s cannot be started, trying again in %.1f s: %s", child.name, child.put_off(), error
        )

    def _descriptors(self) -> list[int]:
        """What of the parent's a child must close; an end of a pipe kept open would hide the parent's death."""
        registered = [key.fd for key in self._selector.get_map().values()]
        selector = getattr(self._selector, "fileno", None)
        return [*registered, self._wake, *([selector()] if selector else [])]

    def _hear(self, child: ChildProcess, pipe: socket.socket) -> None:
        try:
            heard = pipe.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if heard:
            self._guard.learn(child)
        else:
            # The child is ending; that it has ended is told by its signal.
            self._selector.unregister(pipe)
            pipe.close()
            child.pipe = None

    def _look_after(self, child: ChildProcess, replace: bool) -> None:
        status: int | None
        try:
            pid, status = os.waitpid(child.pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            pid, status = child.pid, None  # somebody else has taken its status
        if pid and status is not None and os.WIFSTOPPED(status):
            log.warning("worker %s (process %d) is halted by a signal until CONT", child.name, pid)
        elif pid:
            known = None if status is None else os.waitstatus_to_exitcode(status)
            child.had_jobs = bool(child.lease_table.read_all())
            stopped, code = self._reap(child, known), known or 0
            child.is_finished = self._is_last(child, code) and not child.had_jobs
            _say_end(child, pid, code, stopped, replace=replace and not child.is_finished)

    def _reap(self, child: ChildProcess, code: int | None = None) -> bool:
        """Take over the leases of this slot's dead child. Returns whether we had killed it because of its job."""
        for process in child.lease_table.processes():
            stop_group(process)
        stopped = self._guard.owe(child, *child.release_of(code))
        if child.pipe is not None:
            self._selector.unregister(child.pipe)
        child.leave()
        return stopped


def _say_end(child: ChildProcess, pid: int, code: int, stopped: bool, *, replace: bool) -> None:
    if not replace:
        log.info("worker %s (process %d) %s", child.name, pid, how_ended(code) if code else "has ended")
        return
    how, was_meant, pause = child.replace(code, stopped)
    level = logging.INFO if was_meant else logging.WARNING
    log.log(level, "worker %s (process %d) %s; it is replaced in %.1f s", child.name, pid, how, pause)


def _flush() -> None:
    """What is written but not out yet would come out of every child again."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
