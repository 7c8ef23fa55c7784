"""Processes that must not outlive the one that forked them, and what a process still sends when it ends."""

import atexit
import ctypes
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

_ON_DEATH_OF_PARENT: Final = 1  # prctl
_ADOPT_ORPHANS: Final = 36  # prctl
_LOOK: Final = 0.5  # seconds between two looks at the parent, where the system does not report its death


def die_with(parent: int) -> None:
    """Have this process, just forked by the thread that called in `parent`, killed when its parent ends."""
    prctl = _prctl()
    if prctl is None:
        threading.Thread(target=_watch, args=(parent,), name="holdfast-parent", daemon=True).start()
    else:
        prctl(_ON_DEATH_OF_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it ended before that


def prepare() -> None:
    """Load what `die_with` needs, before the fork, and have the forked process share memory for longer."""
    _prctl()
    gc.freeze()  # a collection would write to every object that exists by now, and so copy its page


@contextmanager
def adopting_orphans() -> Generator[bool]:
    """Be the parent of what a descendant leaves behind in the time of a `with` block; of False where that cannot be."""
    prctl = _prctl()
    adopts = prctl is not None and prctl(_ADOPT_ORPHANS, 1, 0, 0, 0) == 0
    try:
        yield adopts
    finally:
        if prctl is not None and adopts:
            prctl(_ADOPT_ORPHANS, 0, 0, 0, 0)


def adopts_orphans() -> bool:
    """Whether processes can be the parents of orphans on this system."""
    with adopting_orphans() as adopts:
        return adopts


def lead_group(pid: int = 0) -> None:
    """Make a process just forked the leader of a group: both it and its parent do so, for either may be first."""
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass  # it has ended, or runs another program already


def stop_group(pid: int) -> None:
    """Kill the group of a process that leads one."""
    for kill in (os.killpg, os.kill):  # the second: it may have left the group it led
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


@cache
def _prctl() -> Callable[..., Any] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None


def _watch(parent: int) -> None:
    never = threading.Event()
    while os.getppid() == parent:
        never.wait(_LOOK)
    os.kill(os.getpid(), signal.SIGKILL)


log = logging.getLogger("holdfast")


def run_exit_handlers() -> None:
    """Do what an interpreter does when it ends, but do not wait for threads."""
    try:
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()


PATIENCE: Final = 1.0
"""Seconds that each of them has: a process that was ordered to end now has few."""


def send_rest() -> None:
    """Let OpenTelemetry and Sentry, where they are loaded, send what they keep back. Raises nothing."""
    _try("OpenTelemetry", _flush_spans)
    _try("Sentry", _flush_reports)


def _flush_spans() -> None:
    api: Any = sys.modules.get("opentelemetry.trace")
    flush = getattr(api.get_tracer_provider(), "force_flush", None) if api is not None else None
    if flush is not None:
        flush(round(PATIENCE * 1000))


def _flush_reports() -> None:
    sdk: Any = sys.modules.get("sentry_sdk")
    if sdk is not None:
        sdk.flush(PATIENCE)


def _try(name: str, flush: Callable[[], None]) -> None:
    try:
        flush()
    except Exception:
        log.exception("%s could not send its buffered data", name)


def thread_lives(number: int) -> bool:
    """Whether a thread of this process lives, by its native number; True where that cannot be found out."""
    try:
        return number in map(int, os.listdir("/proc/self/task"))  # noqa: PTH208
    except OSError:
        return True
