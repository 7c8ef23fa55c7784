"""Being told to stop: flags that code reads, and descriptors that selectors wait on."""

import logging
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from types import FrameType
from typing import Any, Final

log = logging.getLogger("holdfast")

Handler = Callable[[int, FrameType | None], Any]

ALL: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
    signal.SIGHUP,
    signal.SIGCHLD,
)


TOGETHER: Final = 1.0  # seconds


def how_ended(code: int) -> str:
    """How a process ended, in words: `code` is its exit status, or minus the number of the signal that killed it."""
    if code >= 0:
        return f"ended with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"  # most real-time signals have no name


class Terminated(BaseException):
    """Raised in the main thread of a worker that must end now, so that blocks unwind. Nothing is recorded."""


class Stop:
    """Whether a worker was asked to stop after its current jobs.

    `fileno()` becomes readable when that happens, or when `wake` is called; any thread may do either.
    """

    def __init__(self) -> None:
        self.requested = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """What a selector waits on."""
        return self._read

    @property
    def wake_fd(self) -> int:
        """Where `signal.set_wakeup_fd` may write."""
        return self._write

    def request(self) -> None:
        """Ask the worker to take no more jobs and end."""
        self.requested = True
        self.wake()

    def wake(self) -> None:
        """Make whoever waits look again."""
        try:
            os.write(self._write, b"\0")
        except (BlockingIOError, OSError):
            pass  # a full pipe wakes as well as an emptier one

    def heard(self) -> bytes:
        """Take what was written: zeros by `wake`, signal numbers by the interpreter."""
        try:
            return os.read(self._read, 4096)
        except (BlockingIOError, OSError):
            return b""

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._read)
        os.close(self._write)


class Handlers:
    """Signal handlers for the time of a `with` block, in the main thread; elsewhere it does nothing."""

    def __init__(self, handlers: Mapping[signal.Signals, Handler], wake_fd: int = -1) -> None:
        self._handlers = handlers
        self._wake_fd = wake_fd
        self._before: list[tuple[signal.Signals, Any]] = []
        self._fd_before = -1

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._fd_before = signal.set_wakeup_fd(self._wake_fd, warn_on_full_buffer=False)
            self._before = [(number, signal.signal(number, to)) for number, to in self._handlers.items()]

    def __exit__(self, *_: object) -> None:
        if self._before:
            for number, handler in self._before:
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._fd_before)
            self._before = []


def reset(numbers: Iterable[signal.Signals] = ALL) -> None:
    """Forget every handler that a forked child inherited."""
    signal.set_wakeup_fd(-1)
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)


def stack_of(frame: FrameType | None) -> str:
    """The stack a signal found the main thread in."""
    return "".join(traceback.format_stack(frame))


def terminator() -> Handler:
    """A handler that ends the process by way of an exception. Orders that come together are one.

    The second would cut off what the first one set going; one that comes later is obeyed again.
    """
    heard_at = -TOGETHER

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal heard_at
        now = monotonic()
        if now - heard_at >= TOGETHER:
            heard_at = now
            raise Terminated

    return terminate


def log_stack(number: int, frame: FrameType | None) -> None:
    """Write to the log where this process is."""
    log.warning("at %s process %d is here:\n%s", signal.Signals(number).name, os.getpid(), stack_of(frame))


def at_hup(handler: Callable[[], object] | None) -> Handler:
    """What a worker does at HUP: call the handler it was given, or write to the log where it is."""
    if handler is None:
        return log_stack

    def call(number: int, frame: FrameType | None) -> None:
        try:
            handler()
        except Exception:
            # It may come in the middle of a job, which has nothing to do with it.
            log.exception("the handler for HUP failed")

    return call


def worker_handlers(stop: Stop) -> dict[signal.Signals, Handler]:
    """What a process that performs jobs in its main thread does at a signal."""
    terminate = terminator()
    return {
        signal.SIGTERM: terminate,
        signal.SIGINT: terminate,
        signal.SIGQUIT: lambda number, frame: stop.request(),
        signal.SIGUSR1: log_stack,
        signal.SIGUSR2: log_stack,
    }
