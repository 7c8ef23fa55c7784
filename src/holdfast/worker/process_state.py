"""The state of one process of a worker: its title, what its jobs left behind, and interrupting the job of a lost lease.

A title is set at most ten times a second, however short the jobs are; one that was withheld is shown as soon as it may be, so
that a job which runs long is never hidden behind a short one before it.
"""

import asyncio
import errno
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from inspect import CORO_CLOSED, getcoroutinestate
from math import inf
from time import monotonic
from types import FrameType
from typing import Any, Final, TextIO, cast

from holdfast.code.current import running
from holdfast.release import VERSION
from holdfast.worker import signals
from holdfast.worker.middleware.limits import memory_used
from holdfast.worker.settings import WorkerSettings
from holdfast.worker.signals import UNWIND, Terminated, start_without_signals

log = logging.getLogger("holdfast")

PAUSE: Final = 0.1
"""Seconds between two titles."""
_LONGEST: Final = 500

Status = tuple[Any, ...]
"""A format and its arguments, as logging takes them: most are never formatted."""


def _no_title() -> str:
    return ""


def _ignore(title: str) -> None:
    """There is no title here that could be set."""


try:
    from setproctitle import getproctitle as _get
    from setproctitle import setproctitle as _set
except ImportError:  # pragma: no cover: a system for which there is no such package
    _get, _set = _no_title, _ignore


def get_title() -> str:
    """Return the title of this process, as `ps` shows it; "" where titles do not work."""
    return _get()


def set_title(message: str) -> None:
    """Let `ps` show `message` for this process, as one line; does nothing where that does not work."""
    _set("".join(char if char.isprintable() else "?" for char in message))


class Title:
    """The title of one process: `show` is cheap enough for every job.

    A withheld title is shown by a short-lived thread, or if `follows` is False by the owner, who calls `catch_up` at `due()`.
    """

    def __init__(self, follows: bool = True) -> None:
        self._before = get_title()
        self._follows = follows
        self._wanted: Status = ()
        self._shown: Status = ()
        self._next = 0.0
        self._later: threading.Timer | None = None
        # Read for each job, where asking the thread itself would cost more than the job.
        self._is_followed = False

    def show(self, status: str, *parts: Any) -> None:
        """Show `status % parts`, now or soon."""
        wanted = self._wanted = (status, *parts)
        if monotonic() >= self._next:
            self.catch_up()
        elif self._follows and not self._is_followed and wanted != self._shown:
            self._is_followed = True
            self._later = threading.Timer(max(0.0, self._next - monotonic()), self._follow)
            self._later.daemon, self._later.name = True, "holdfast-title"
            try:
                start_without_signals(self._later)
            except RuntimeError as error:
                log.debug("a title is not shown: %s", error)  # no thread can be started now
                self._later, self._is_followed = None, False

    def rest(self, description: str, paused: bool = False) -> None:
        """Show and log that there are no jobs in the queues of `description`, or that none may be taken for now."""
        if paused:
            log.debug("the worker for %s is paused and sleeps", description)
        else:
            log.debug("there are no jobs for %s; the worker sleeps until it is woken", description)
        self.show("Paused -- %s" if paused else "Waiting for %s", description)

    def renew(self) -> None:
        """Reset in a forked process: it has shown no title yet, and the thread of its parent does not exist here."""
        self._next = 0.0
        self._later = None
        self._is_followed = False

    def due(self) -> float:
        """Return when to call `catch_up`, on the monotonic clock; inf while nothing is withheld."""
        return inf if self._wanted == self._shown else self._next

    def catch_up(self) -> None:
        """Show the latest title."""
        while (wanted := self._wanted) != self._shown:
            self._next = monotonic() + PAUSE
            set_title(_formatted(wanted))
            # Two threads may be here: the last one to leave has seen that the latest title is shown.
            self._shown = wanted

    def _follow(self) -> None:
        # First: what is to be shown from now on gets a thread of its own.
        self._is_followed = False
        self.catch_up()

    def close(self) -> None:
        """Restore the title that the process had."""
        if self._later is not None:
            self._later.cancel()
            if self._later.is_alive():
                self._later.join()
        set_title(self._before)


def _formatted(status: Status) -> str:
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    # A status that is too long is cut; the moment is not.
    return f"holdfast-{VERSION}: {(status[0] % status[1:])[:_LONGEST]} at {now}"


STANDARD: Final = (0, 1, 2)
LOOK: Final = 0.05
"""Seconds between two checks of what costs some time to check."""


def keep_standard() -> bool:
    """Open standard input, output and error where a job closed them. Return whether any was closed.

    The next connection to the store would be opened under their numbers, and logs and prints be written into it.
    """
    closed = False
    for descriptor in STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is given, and those before it are taken.
            os.open(os.devnull, os.O_RDWR)
            closed = True
    return closed


class ClosedDescriptors(OSError):
    """A job closed descriptors without which its event loop cannot work."""


def run_on(runner: asyncio.Runner, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run the coroutine of a job to its end. Raises ClosedDescriptors if it is cut short because descriptors were closed."""
    ended: list[Any] = []

    async def keep() -> None:
        ended.append(await coroutine)

    try:
        # The copy carries the current job into the coroutine.
        runner.run(keep(), context=copy_context())
    except OSError as error:
        # What the code itself raises has ended the coroutine.
        if error.errno == errno.EBADF and (ended or getcoroutinestate(cast("Any", coroutine)) != CORO_CLOSED):
            if not ended:
                raise ClosedDescriptors(
                    errno.EBADF,
                    "the job closed descriptors of its process, whose event loop cannot work without them",
                ) from error
        else:
            raise
    return ended[0]


class CoroutineRunner:
    """Runs coroutines of jobs to their ends, one after the other, on an event loop of the thread that `run` is called in."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._is_terminated = False

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end. Raises Terminated when a signal handler has raised it, after the coroutine was unwound."""
        if self._runner is None:
            self._runner = asyncio.Runner()
            self._runner.get_loop().set_exception_handler(self._on_loop_error)
        try:
            return run_on(self._runner, coroutine)
        except asyncio.CancelledError:
            if self._is_terminated:
                raise Terminated from None
            raise
        except KeyboardInterrupt:
            # The coroutine was left where it was: it is cancelled with its loop, and unwinds. Later jobs get another
            # loop, even if a second interrupt ends this early.
            runner, self._runner = self._runner, None
            runner.close()
            raise

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Unwind the job when Terminated was raised between two of its steps, where asyncio would only log it."""
        if isinstance(context.get("exception"), Terminated):
            self._is_terminated = True
            for task in asyncio.all_tasks(loop):
                task.cancel()
        else:
            loop.default_exception_handler(context)

    def close(self) -> None:
        """End the event loop; what still runs on it is cancelled."""
        if self._runner is not None:
            with suppress(OSError):  # a job closed its descriptors
                self._runner.close()


class ProcessState:
    """Whether a process should be replaced after its jobs: it has grown too large, or lost descriptors.

    Made when its signal handlers stand. `own` are descriptors that it cannot work without.
    """

    def __init__(self, settings: WorkerSettings, *own: int) -> None:
        self.is_used_up = False
        self._most = settings.max_memory // 1024
        self._own = (*STANDARD, *own)
        self._streams = [stream for stream in (sys.stdout, sys.stderr) if stream is not None]
        self._is_main = threading.current_thread() is threading.main_thread()
        self._handlers = {number: signal.getsignal(number) for number in signals.ALL}
        self._wake_fd = -1
        if self._is_main:
            self._wake_fd = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(self._wake_fd, warn_on_full_buffer=False)
        if self._wake_fd >= 0:
            self._own = (*self._own, self._wake_fd)
        self._poll = self._make_poll()
        self._looked = 0.0

    def is_cut_off(self) -> bool:
        """Whether a job closed descriptors that this process cannot work without. Any thread may call this."""
        # Two threads cannot use one object at the same time.
        return any(event & select.POLLNVAL for _, event in self._make_poll().poll(0))

    def _make_poll(self) -> select.poll:
        poll = select.poll()
        for descriptor in self._own:
            poll.register(descriptor, 0)
        return poll

    def check(self) -> bool:
        """Check what the last jobs left, before anything else is opened or taken. Return whether the process is used up."""
        ready = self._poll.poll(0)
        if ready:
            self._reopen([descriptor for descriptor, event in ready if event & select.POLLNVAL])
        for stream in self._streams:
            if stream.closed:
                self._renew(stream)
        if self._most and (used := memory_used()) > self._most:
            self._use_up("uses %d KB, more than %d", used, self._most)
        now = monotonic()
        if now - self._looked >= LOOK:
            self._looked = now
            self._restore()
        return self.is_used_up

    def _reopen(self, closed: list[int]) -> None:
        if not closed:
            return
        keep_standard()
        self._own = tuple(descriptor for descriptor in self._own if descriptor not in closed)
        self._poll = self._make_poll()
        if self._wake_fd in closed:
            # A connection to the store may get that number, and signals would be written into it.
            signal.set_wakeup_fd(-1)
            self._wake_fd = -1
        self._use_up("has lost descriptors that a job closed (%s)", ", ".join(map(str, closed)))

    def _renew(self, closed: TextIO) -> None:
        """Replace a standard stream that a job closed, as wrappers of it do that are collected; its descriptor is open."""
        name = "stdout" if closed in (sys.__stdout__, sys.stdout) else "stderr"
        descriptor = ("stdout", "stderr").index(name) + 1
        renewed = open(descriptor, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        self._streams = [renewed if stream is closed else stream for stream in self._streams]
        for where in (name, f"__{name}__"):
            if getattr(sys, where) is closed:
                setattr(sys, where, renewed)
        log.warning("a job closed sys.%s; it was opened again", name)

    def _use_up(self, why: str, *facts: object) -> None:
        if not self.is_used_up:
            self.is_used_up = True
            log.warning(f"process %d {why}: it ends after its jobs", os.getpid(), *facts)

    def _restore(self) -> None:
        if socket.getdefaulttimeout() is not None:
            log.warning("a job changed the default timeout of sockets; it was reset")
            socket.setdefaulttimeout(None)
        if not self._is_main:
            return
        if signal.getitimer(signal.ITIMER_REAL)[0]:
            log.warning("a job left an alarm set; it was cancelled")
            signal.setitimer(signal.ITIMER_REAL, 0)
        changed = [number for number, ours in self._handlers.items() if signal.getsignal(number) != ours]
        for number in changed:
            log.warning("a job changed the handler for %s; it was reset", number.name)
            signal.signal(number, self._handlers[number] or signal.SIG_DFL)
        if changed:
            signal.set_wakeup_fd(self._wake_fd, warn_on_full_buffer=False)


BREAK_OFF: Final = UNWIND
"""The signal that wakes the main thread from any wait."""

AGAIN: Final = 1.0  # seconds until a job that did not end is interrupted once more


def break_off(number: int, frame: FrameType | None) -> None:
    """Interrupt the job that this thread performs if its lease is known to be lost. Raises KeyboardInterrupt.

    A job has a second to unwind before it is interrupted again; so has the worker to note how it ended.
    """
    current = running.get()
    why = current.lost() if current is not None else ""
    if current is not None and why and monotonic() >= current.interrupted + AGAIN:
        current.interrupted = monotonic()
        raise KeyboardInterrupt(why)


def wake_main() -> None:
    """Have the main thread check whether its job is to be interrupted."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, BREAK_OFF)
