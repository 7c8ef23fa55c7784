"""Signals of workers: what each does, flags that code reads, and descriptors that selectors wait on."""

import code
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import monotonic
from types import FrameType
from typing import Any, Final

from holdfast.code.outcomes import Terminated as Terminated
from holdfast.worker.observe.stacks import stacks_of_jobs

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
    signal.SIGVTALRM,
)

UNWIND: Final = signal.SIGVTALRM
"""The order of a parent to a child, or of a child to the process of a job, to end now; other programs hardly use it.

TERM and INT may reach a whole process group, and it is the parent that decides how long jobs may take.
"""

TOGETHER: Final = 1.0
"""Seconds within which several orders to stop count as one."""


def name_of(number: int) -> str:
    """Return a signal's name as people write it to `kill`: "TERM"."""
    return signal.Signals(number).name.removeprefix("SIG")


def cause_of(status: int) -> str:
    """Return why a process ended, for the history of its jobs: "SIGSEGV", or "exit status 3"; `status` as in `how_ended`."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def how_ended(status: int) -> str:
    """Return how a process ended, in words: `status` is its exit status, or minus the number of the signal that killed it."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"  # most real-time signals have no name


class Stop:
    """Whether a worker was asked to stop after its current jobs, or (`paused`) to take no more for now.

    `fileno()` becomes readable when that happens, or when `wake` is called; any thread may do either.
    """

    def __init__(self) -> None:
        self.requested = False
        self.paused = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """Return the descriptor that selectors wait on."""
        return self._read

    @property
    def wake_fd(self) -> int:
        """The descriptor for `signal.set_wakeup_fd`."""
        return self._write

    def request(self) -> None:
        """Ask the worker to take no more jobs and end."""
        self.requested = True
        self.wake()

    def wake(self) -> None:
        """End a wait on the descriptor."""
        self.write(0)

    def write(self, number: int) -> None:
        """End a wait on the descriptor, as if this signal had come."""
        try:
            os.write(self._write, bytes((number,)))
        except OSError:
            pass  # a full pipe is readable too, and a closed one has no reader

    def read(self) -> bytes:
        """Read what was written: zeros by `wake`, signal numbers by the interpreter."""
        try:
            return os.read(self._read, 4096)
        except (BlockingIOError, OSError):
            return b""

    def close(self) -> None:
        """Close the descriptors; a later `wake` does nothing."""
        read, write, self._read, self._write = self._read, self._write, -1, -1
        for descriptor in (read, write):
            with suppress(OSError):  # a job closed it
                os.close(descriptor)


def start_without_signals(thread: threading.Thread) -> None:
    """Start a thread to which the system delivers no signal that a worker handles.

    Python runs handlers in the main thread, but a signal that another thread received does not wake the main thread
    from a system call: a job that sleeps there would not be stopped.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


def before_and_after_work() -> Handlers:
    """Return the handlers of a worker that begins or ends: orders to stop end it, and the other signals are ignored."""
    return Handlers(
        {
            **dict.fromkeys((signal.SIGTERM, signal.SIGINT, signal.SIGQUIT), _end_command),
            **dict.fromkeys((signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2), ignore),
        }
    )


def _end_command(number: int, frame: FrameType | None) -> None:
    log.info("stopped; no job was running")
    end_process(number, frame)


def end_process(number: int, frame: FrameType | None) -> None:
    """End this process, which runs no job. An exception might be raised where it is ignored."""
    os._exit(0)


def ignore(number: int, frame: FrameType | None) -> None:
    """A function, because a program that is started here would inherit what is merely ignored."""


def reset(numbers: Iterable[signal.Signals] = ALL) -> None:
    """Reset every handler that a forked child inherited."""
    signal.set_wakeup_fd(-1)
    DeferredTermination.is_active = DeferredTermination.is_due = False
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)


def stack_of(frame: FrameType | None) -> str:
    """Return the stack of a frame as text."""
    return "".join(traceback.format_stack(frame))


def terminator() -> Handler:
    """Return a handler that ends the process by an exception. Orders that come together are one.

    The second would interrupt what the first one began; one that comes later is obeyed again.
    """
    obeyed_at = -TOGETHER

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal obeyed_at
        now = monotonic()
        if now - obeyed_at >= TOGETHER:
            obeyed_at = now
            if DeferredTermination.is_active:
                DeferredTermination.is_due = True
            else:
                raise Terminated

    return terminate


class DeferredTermination:
    """Raise Terminated at the end of a `with` block instead of within it. Blocks are not nested.

    For a fork: the hooks that run around it only print what a signal handler raises there, and the worker would miss its order.
    """

    is_active = False
    is_due = False

    def __enter__(self) -> None:
        DeferredTermination.is_active = True

    def __exit__(self, *_: object) -> None:
        DeferredTermination.is_active = False
        if DeferredTermination.is_due:
            DeferredTermination.is_due = False
            raise Terminated


def log_stack(number: int, frame: FrameType | None) -> None:
    """Log the stack of the main thread, and of each job that runs elsewhere in this process."""
    log.warning(
        "signal %s: stack of process %d:\n%s", signal.Signals(number).name, os.getpid(), stack_of(frame)
    )
    for jid, stack in stacks_of_jobs().items():
        log.warning("stack of job %s:\n%s", jid, stack)


def at_hup(handler: Callable[[], object] | None) -> Handler:
    """Return what a worker does at HUP: call its handler, or log its stack."""
    if handler is None:
        return log_stack

    def call(number: int, frame: FrameType | None) -> None:
        try:
            handler()
        except Exception:
            # It may come in the middle of a job, which must not fail for it.
            log.exception("the handler for HUP failed")

    return call


def at_usr2(debugger: bool) -> Handler:
    """Return a handler that logs the stack, and then opens a console there, if standard input is a terminal or with `debugger`.

    The console sees the variables of the frame that was interrupted, and the process waits for its end.
    """

    def look(number: int, frame: FrameType | None) -> None:
        log_stack(number, frame)
        if frame is not None and (debugger or _is_at_a_terminal()):
            _open_console(frame)

    return look


def _is_at_a_terminal() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False  # there is none, or it is closed


def _leave_console() -> None:
    """Leave the console; the interpreter's own `exit()` would close standard input for all consoles to come."""
    raise SystemExit


def _open_console(frame: FrameType) -> None:
    leave = dict.fromkeys(("exit", "quit"), _leave_console)
    seen: dict[str, Any] = {**frame.f_globals, **frame.f_locals, **leave}
    try:
        code.interact(f"{stack_of(frame)}Process {os.getpid()} is stopped here.", None, seen, "It continues.")
    except SystemExit:
        pass  # one way to leave it, and not meant for the job
    except Exception:
        log.exception("the console failed")


def worker_handlers(stop: Stop, debugger: bool = False) -> dict[signal.Signals, Handler]:
    """Return the signal handlers of a child that runs jobs: only its parent orders it to stop running jobs."""
    terminate = terminator()

    def end(number: int, frame: FrameType | None) -> None:
        # Where the exception is lost, in a destructor for example, the worker ends after its job.
        stop.request()
        terminate(number, frame)

    def finish(number: int, frame: FrameType | None) -> None:
        stop.request()

    return {
        signal.SIGTERM: finish,
        signal.SIGINT: ignore,
        signal.SIGQUIT: finish,
        UNWIND: end,
        signal.SIGUSR1: log_stack,
        signal.SIGUSR2: at_usr2(debugger),
    }
