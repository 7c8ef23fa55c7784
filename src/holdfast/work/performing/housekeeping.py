"""How worn a process is after its jobs, what is restored after each, and breaking off the job of a lost lease."""

import logging
import os
import select
import signal
import socket
import threading
from time import monotonic
from types import FrameType
from typing import Final

from holdfast.code.current import running
from holdfast.work import signals
from holdfast.work.middleware.limits import memory_used
from holdfast.work.settings import WorkerSettings
from holdfast.work.signals import UNWIND

log = logging.getLogger("holdfast")

STANDARD: Final = (0, 1, 2)
LOOK: Final = 0.05
"""Seconds between two looks at what costs some time to look at."""


def keep_standard() -> bool:
    """Fill standard input, output and error where a job closed them. Answers whether it did.

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


class Housekeeping:
    """Whether a process should end after the jobs under way, to be replaced: it has grown too large, or is spoilt.

    Made when its signal handlers stand. `own` are descriptors that it cannot work without.
    """

    def __init__(self, settings: WorkerSettings, *own: int) -> None:
        self.is_used_up = False
        self._most = settings.max_memory // 1024
        self._poll = select.poll()
        for descriptor in (*STANDARD, *own):
            self._poll.register(descriptor, 0)
        self._is_main = threading.current_thread() is threading.main_thread()
        self._handlers = {number: signal.getsignal(number) for number in signals.ALL}
        self._wake_fd = -1
        if self._is_main:
            self._wake_fd = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(self._wake_fd, warn_on_full_buffer=False)
        self._looked = 0.0

    def look(self) -> None:
        """Look what the last jobs left, before anything else is opened or taken."""
        closed = [descriptor for descriptor, event in self._poll.poll(0) if event & select.POLLNVAL]
        if closed:
            self._close(closed)
        if self._most and (used := memory_used()) > self._most:
            self._use_up("uses %d KB, more than %d", used, self._most)
        now = monotonic()
        if now - self._looked >= LOOK:
            self._looked = now
            self._put_right()

    def _close(self, closed: list[int]) -> None:
        keep_standard()
        for descriptor in closed:
            self._poll.unregister(descriptor)
        if self._wake_fd in closed:
            # A connection to the store may get that number, and signals would be written into it.
            signal.set_wakeup_fd(-1)
            self._wake_fd = -1
        self._use_up("has lost descriptors that a job closed (%s)", ", ".join(map(str, closed)))

    def _use_up(self, why: str, *facts: object) -> None:
        if not self.is_used_up:
            self.is_used_up = True
            log.warning(f"process %d {why}: it ends after its jobs", os.getpid(), *facts)

    def _put_right(self) -> None:
        if socket.getdefaulttimeout() is not None:
            log.warning("a job left a default timeout of sockets behind; it is taken back")
            socket.setdefaulttimeout(None)
        if not self._is_main:
            return
        if signal.getitimer(signal.ITIMER_REAL)[0]:
            log.warning("a job left an alarm behind; it is taken back")
            signal.setitimer(signal.ITIMER_REAL, 0)
        changed = [number for number, ours in self._handlers.items() if signal.getsignal(number) != ours]
        for number in changed:
            log.warning("a job left its own handler for %s behind; it is taken back", number.name)
            signal.signal(number, self._handlers[number] or signal.SIG_DFL)
        if changed:
            signal.set_wakeup_fd(self._wake_fd, warn_on_full_buffer=False)


BREAK_OFF: Final = UNWIND
"""The signal that wakes the main thread from any wait."""

AGAIN: Final = 1.0  # seconds until a job that did not end is interrupted once more


def break_off(number: int, frame: FrameType | None) -> None:
    """Interrupt the job that this thread performs if its lease is known to be lost. Raises KeyboardInterrupt.

    A job has a second to unwind before it is interrupted again; so have we to note how it ended.
    """
    current = running.get()
    why = current.lost() if current is not None else ""
    if current is not None and why and monotonic() >= current.interrupted + AGAIN:
        current.interrupted = monotonic()
        raise KeyboardInterrupt(why)


def wake_main() -> None:
    """Have the main thread look whether its job is to be broken off."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, BREAK_OFF)
