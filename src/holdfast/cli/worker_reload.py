"""`holdfast worker --reload`: run the worker in a child, and restart it when Python files change. For development.

The parent imports nothing of the user's code, so each child starts with the code as it is when it starts.
"""

import logging
import os
import select
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

from holdfast.text import listed
from holdfast.worker import signals
from holdfast.worker.processes import die_with, prepare
from holdfast.worker.settings import FOLDER
from holdfast.worker.signals import Handlers, Stop
from holdfast.worker.startup import StartupCode
from holdfast.worker.startup_check import StartupCheck, share_obstacle

log = logging.getLogger("holdfast")

LOOK: Final = 0.4  # seconds between two scans
MOST_FILES: Final = 20_000
_EXCLUDED: Final = ("__pycache__", "node_modules", "site-packages", "dist-packages", FOLDER)

Files = Mapping[str, tuple[int, int]]
"""The modification time and size of each file."""


class Watch:
    """The Python files below some directories, except hidden files, environments, installed packages and sandboxes."""

    def __init__(self, directories: Iterable[str]) -> None:
        self._directories = list(dict.fromkeys(directories))
        self._known = self._last = self._scan()
        self._scan_at = 0.0
        if len(self._known) == MOST_FILES:
            log.warning("only the first %d Python files below %s are watched", MOST_FILES, self._directories)

    def changed(self) -> list[str]:
        """Return the files that changed since the last call, once two scans in a row found the same.

        Scans at most every 0.4 seconds, and for at most a tenth of the time.
        """
        began = monotonic()
        if began < self._scan_at:
            return []
        files = self._scan()
        self._scan_at = began + max(LOOK, 10 * (monotonic() - began))
        is_settled, self._last = files == self._last, files
        if files == self._known or not is_settled:
            return []
        before, self._known = self._known, files
        return sorted(path for path in {*files, *before} if files.get(path) != before.get(path))

    def _scan(self) -> Files:
        found: dict[str, tuple[int, int]] = {}
        for path in _python_files(self._directories):
            try:
                status = path.stat()
            except OSError:
                continue  # just removed, or a broken link
            found[str(path)] = status.st_mtime_ns, status.st_size
            if len(found) == MOST_FILES:
                break
        return found


def mistake_in(paths: Iterable[str]) -> str:
    """Return the first syntax error in some files, empty if there is none; missing files are skipped."""
    for path in paths:
        try:
            with warnings.catch_warnings(action="ignore"):
                compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            return f"{os.path.relpath(path)}, line {line}: {getattr(error, 'msg', error)}"
        except OSError:
            continue
    return ""


def _python_files(directories: Iterable[str]) -> Iterator[Path]:
    for directory in directories:
        for parent, folders, names in os.walk(directory):
            folders[:] = sorted(name for name in folders if _is_watched(parent, name))
            yield from (Path(parent, name) for name in names if name.endswith(".py"))


def _is_watched(parent: str, name: str) -> bool:
    return (
        not name.startswith(".") and name not in _EXCLUDED and not Path(parent, name, "pyvenv.cfg").exists()
    )


SHUTDOWN_TIMEOUT: Final = 10.0  # seconds that running jobs have before they are requeued
_TICK: Final = 0.2
_USAGE_ERROR: Final = 2
_ENDS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


def reloading(code: StartupCode) -> int | None:
    """Run a worker in a child, and restart it when a Python file below its root or paths changes.

    The running worker is replaced only after a separate process has loaded the changed `code`.

    Returns None in each child, which then continues as the worker; in the parent, the exit code of the last child.
    Signals to the parent are passed on; TERM, INT and QUIT end both, and no child outlives the parent. Call it from a
    process with one thread.
    """
    prepare()
    share_obstacle()
    parent = _Parent(Watch((code.root, *code.paths)), code)
    with Handlers(dict.fromkeys(signals.ALL, _ignore), parent.stop.wake_fd):
        status = parent.run()
    parent.stop.close()
    if status is None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)  # blocked since before the fork
    return status


class _Parent:
    """Watches the files and the child."""

    def __init__(self, watch: Watch, code: StartupCode) -> None:
        self.stop = Stop()
        self._check = StartupCheck(code, "the old worker keeps running")
        self._watch = watch
        self._pid = 0
        self._code = 0
        self._starts = 0
        self._is_ending = False
        self._wants_new = True
        self._hurry_at = 0.0

    def run(self) -> int | None:
        """Return the exit code of the last worker; None in each child."""
        while True:
            if self._wants_new and not self._pid and not self._is_ending and self._is_child():
                return None
            select.select([self.stop], [], [], _TICK)
            for number in self.stop.read():
                self._on_signal(number)
            if self._pid:
                self._reap()
            if not self._pid and (self._is_ending or self._has_ended()):
                self._check.end()
                return max(self._code, 0)
            if self._check.result():
                self._replace()
            changed = self._watch.changed()
            if changed:
                self._on_change(changed)
            self._hurry()

    def _is_child(self) -> bool:
        """Fork a worker, and return True in the child."""
        self._wants_new = False
        self._starts += 1
        # Until the child has its own handlers, a signal to it would run those of the parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, signals.ALL)
        parent = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            die_with(parent)
            sys.dont_write_bytecode = (
                True  # after two edits within a second, Python would use the bytecode of the first
            )
            return True
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ALL)
        return False

    def _reap(self) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid:
            return
        self._pid, self._code = 0, os.waitstatus_to_exitcode(status)
        if not (self._is_ending or self._wants_new or self._has_ended()):
            log.error("the worker exited with status %d; it restarts when code changes", self._code)

    def _has_ended(self) -> bool:
        """Return whether the worker is not started again: it drained its queues, or its first start was a usage error."""
        return not self._wants_new and (self._code == 0 or (self._code == _USAGE_ERROR and self._starts == 1))

    def _on_change(self, changed: list[str]) -> None:
        mistake = mistake_in(changed)
        if mistake:
            log.warning("code changed, but it cannot be loaded: %s; the old worker keeps running", mistake)
            return
        log.info("code changed (%s)", listed([os.path.relpath(path) for path in changed], 3))
        if not (self._pid and self._check.start()):
            self._replace()

    def _replace(self) -> None:
        log.info("the worker restarts after the running jobs")
        self._wants_new = True
        self._hurry_at = monotonic() + SHUTDOWN_TIMEOUT
        self._send(signal.SIGQUIT)

    def _hurry(self) -> None:
        if self._wants_new and self._pid and monotonic() >= self._hurry_at:
            log.info("running jobs did not finish within %g s; they are requeued", SHUTDOWN_TIMEOUT)
            self._hurry_at = monotonic() + SHUTDOWN_TIMEOUT
            self._send(signal.SIGTERM)

    def _on_signal(self, number: int) -> None:
        if number in _ENDS:
            self._is_ending = True
        if number not in (0, signal.SIGCHLD):
            self._send(signal.Signals(number))

    def _send(self, number: signal.Signals) -> None:
        if self._pid:
            os.kill(self._pid, number)


def _ignore(number: int, frame: object) -> None:
    """Do nothing: the signal is written to the descriptor that `run` waits for."""
