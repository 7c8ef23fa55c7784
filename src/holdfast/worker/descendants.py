"""Processes that jobs start: what they inherit of the worker, and how they end with the process of their job.

A process that a job forks gets default signal handlers, and no wake-up descriptor: a signal to it would be written into that of the
worker. It holds the reading end of a pipe whose other end only the process of the job has, and so notices the death of that, however
it dies. Programs that a job starts are ended when that process ends or is killed by its worker. What is in a session of its own is
left. Where there is no /proc, programs are left too.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.code.current import running
from holdfast.text import printable
from holdfast.worker.signals import UNWIND, DeferredTermination

log = logging.getLogger("holdfast")

_BLOCKED: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Held back while a job forks. Not `UNWIND`, whose handler raises: what is raised while the hooks of a fork run is lost."""
_RESET: Final = (*_BLOCKED, signal.SIGCONT, UNWIND)

LOOK: Final = 0.5  # seconds between two looks at a process whose pipe a job closed
MOST: Final = 10_000  # the largest number of processes that are looked at
_TRACKER: Final = b"multiprocessing.resource_tracker"
"""In the command line of multiprocessing's resource tracker, which ends by itself after it has removed shared resources."""


class _Lifeline(NamedTuple):
    """A pipe that ends with the process `pid` of jobs, which runs in `session`. `opened`: what the two ends were."""

    pid: int
    session: int
    ends: tuple[int, int]
    opened: tuple[os.stat_result, os.stat_result]


class _Here:
    """What this process does when a job forks; `handlers` are the worker's. A fork by the worker itself is marked as its `own`."""

    is_guarded = False
    handlers: Mapping[signal.Signals, Any] = {}
    wake_fd = -1
    is_whole = False
    lifeline: _Lifeline | None = None
    thread = threading.local()


def guard_forks(*, is_whole: bool) -> None:
    """Treat what is forked from now on as forked by a job. Call it when the signal handlers stand.

    `is_whole`: this process runs jobs and nothing else. In a process of a program only what a job itself forks ends with it.
    """
    _Here.is_whole = is_whole
    _Here.is_guarded = True
    _Here.handlers, _Here.wake_fd = {}, -1
    if threading.current_thread() is threading.main_thread():
        _Here.handlers = {number: signal.getsignal(number) for number in _RESET}
        _Here.wake_fd = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(_Here.wake_fd, warn_on_full_buffer=False)
    if _Here.lifeline is None:
        ends = os.pipe()
        opened = os.fstat(ends[0]), os.fstat(ends[1])
        _Here.lifeline = _Lifeline(os.getpid(), os.getsid(0), ends, opened)


def leave_forks() -> None:
    """End what `guard_forks` began. What was forked meanwhile ends with this process all the same."""
    _Here.is_guarded = False


class OwnFork:
    """A block in which the worker itself forks, for a process that sets its handlers itself."""

    def __enter__(self) -> None:
        _Here.thread.is_own = True

    def __exit__(self, *_: object) -> None:
        _Here.thread.is_own = False


def _before_fork() -> None:
    _Here.thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED) if _Here.is_guarded else None


def _after_fork_in_parent() -> None:
    mask, _Here.thread.mask = _Here.thread.mask, None
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _after_fork_in_child() -> None:
    lifeline = _Here.lifeline
    try:
        if lifeline is not None and lifeline.ends[1] >= 0:
            _close(lifeline, 1)
            _Here.lifeline = lifeline = lifeline._replace(ends=(lifeline.ends[0], -1))
        if getattr(_Here.thread, "is_own", False):
            if lifeline is not None:
                _close(lifeline, 0)
            _Here.lifeline = None
        else:
            if _Here.is_guarded:
                _reset_handlers()
            if lifeline is not None and (_Here.is_whole or running.get() is not None):
                _end_with(lifeline)
    finally:
        _Here.is_guarded = False
        _after_fork_in_parent()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)


def _reset_handlers() -> None:
    """Reset the handlers of the worker; one that the job set stays."""
    DeferredTermination.is_active = DeferredTermination.is_due = False
    wake_fd = signal.set_wakeup_fd(-1)
    if wake_fd != _Here.wake_fd:
        signal.set_wakeup_fd(wake_fd)
    for number, ours in _Here.handlers.items():
        if signal.getsignal(number) == ours:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)


def _close(lifeline: _Lifeline, end: int) -> None:
    if _is_open(lifeline, end):
        _original("os", "close")(lifeline.ends[end])


def _is_open(lifeline: _Lifeline, end: int) -> bool:
    """Whether a descriptor is still that end: a job may have closed it, and opened something else."""
    try:
        return os.path.samestat(os.fstat(lifeline.ends[end]), lifeline.opened[end])
    except OSError:
        return False


def _end_with(lifeline: _Lifeline) -> None:
    """Have this process, which a job forked, killed when the process of the job has ended, unless it has its own session."""
    if _is_open(lifeline, 0) and os.getsid(0) == lifeline.session:
        _original("_thread", "start_new_thread")(_watch, (lifeline,))


def _watch(lifeline: _Lifeline) -> None:
    """In a thread of the system also under gevent, and without any lock: the process may fork, or run another program."""
    # A call that a signal interrupts would be made again, maybe on what else was opened under its number.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    with suppress(OSError):
        os.read(lifeline.ends[0], 1)
    sleep: Callable[[float], None] = _original("time", "sleep")
    while _is_alive(lifeline.pid):
        sleep(LOOK)
    if os.getsid(0) == lifeline.session:
        os.kill(os.getpid(), signal.SIGKILL)


def _original(module: str, name: str) -> Any:
    """Return what a module has under a name where gevent did not patch it."""
    monkey: Any = sys.modules.get("gevent.monkey")
    if monkey is not None:
        return monkey.get_original(module, name)
    return getattr(sys.modules[module], name)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # One whose parent has not read its status has ended too.
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except ProcessLookupError:
        return False
    except OSError:
        return True  # there is no /proc


def descendants(pid: int) -> list[int]:
    """Return the processes that a process and its descendants started, each after its parent; [] where that is not known."""
    found = _children_of(pid)
    for each in found:
        if len(found) >= MOST:
            break
        found += _children_of(each)
    return found


def _children_of(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_bytes().split())
    return found


def end_descendants() -> None:
    """End what the jobs of this process started and left; the process ends now. Raises nothing."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return  # it has no children, as nearly always
    end_all(descendants(os.getpid()))


def end_all(pids: Iterable[int]) -> None:
    """Kill processes that jobs started; those in a session of their own are logged and left."""
    session = os.getsid(0)
    for pid in pids:
        try:
            is_ours = os.getsid(pid) == session
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if not is_ours and command:
                name = printable(command.replace(b"\0", b" ").decode(errors="replace").strip()[:100])
                log.info("process %d (%s) is left running: a job started it in its own session", pid, name)
            elif is_ours and _TRACKER not in command:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # it has ended, or belongs to somebody else
