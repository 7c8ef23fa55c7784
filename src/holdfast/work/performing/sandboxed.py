"""What gives each job its sandbox, and each class job of a process its working directory."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Final, cast

from holdfast.code.current import Running
from holdfast.errors import UsageError
from holdfast.work.performing.outcome import Ending
from holdfast.work.performing.sandboxes import Lent, Sandbox, Sandboxes, claimed

log = logging.getLogger("holdfast")

LOOK: Final = 0.05  # seconds between two looks at the working directory, where jobs share it


class Home:
    """The directories of one process: where it works, and its sandbox, which is taken when something needs it.

    With `works_in_sandbox` that is where it works.
    """

    def __init__(self, path: str | Path, works_in_sandbox: bool) -> None:
        self._path = path
        self._lock = Lock()
        self._sandbox: Sandbox | None = None
        self._is_missed = False
        self.works_in_sandbox = works_in_sandbox
        if works_in_sandbox:
            self.sandbox().enter()
        self._directory = str(Path.cwd())

    def sandbox(self) -> Sandbox:
        """The sandbox of this process. Raises UsageError, OSError."""
        with self._lock:
            if self._sandbox is None:
                self._sandbox = claimed(self._path)
            return self._sandbox

    def come_back(self) -> None:
        """Make this process work where it did at its start, wherever its last job went."""
        try:
            if self.works_in_sandbox:
                self.sandbox().tidy()
                self.sandbox().enter()
            elif _working_directory() != self._directory:
                os.chdir(self._directory)
            self._is_missed = False
        except OSError as error:
            self.miss(error)

    def miss(self, error: Exception) -> None:
        """Log that jobs cannot work where they should, once until they can."""
        if not self._is_missed:
            where = self._path if self.works_in_sandbox else self._directory
            log.error("the directory %s cannot be used: %s; jobs run without it", where, error)
        self._is_missed = True

    def other(self) -> "Home":
        """The same for a process that was forked from this one and performs a job beside it."""
        return Home(self._path, self.works_in_sandbox)

    def tidy(self) -> None:
        """Empty the sandbox, if it was taken."""
        if self._sandbox is not None:
            try:
                self._sandbox.tidy()
            except OSError as error:
                log.warning("the sandbox %s cannot be emptied: %s", self._sandbox.path, error)

    def close(self) -> None:
        """Leave nothing behind."""
        self.tidy()
        if self._sandbox is not None:
            self._sandbox.leave()


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""  # it was removed


class OneJob:
    """A companion for jobs that are performed one at a time: the sandbox of the process is theirs.

    `enters`: class jobs work in it.
    """

    def __init__(self, home: Home, enters: bool) -> None:
        self._home = home
        self._enters = enters

    def begin(self, current: Running) -> None:
        self._home.come_back()
        current.sandbox = self._take
        if self._enters:
            current.enter_sandbox = self._enter

    def end(self, current: Running, ending: Ending) -> None:
        if not self._home.works_in_sandbox:
            self._home.come_back()
        self._home.tidy()

    def _take(self) -> str:
        sandbox = self._home.sandbox()
        sandbox.open()
        return sandbox.path

    def _enter(self) -> None:
        try:
            sandbox = self._home.sandbox()
            sandbox.tidy()
            sandbox.enter()
        except (OSError, UsageError) as error:
            self._home.miss(error)


class LentSandboxes:
    """A companion for jobs that are performed side by side: each has a directory from the moment it asks for one.

    A change of the working directory by such a job affects the other jobs; it is reset soon after no job runs.
    """

    def __init__(self, home: Home, word: str) -> None:
        self._home = home
        self._word = word
        self._sandboxes: Sandboxes | None = None
        # Threads share this: nobody may empty the sandbox of the process while a job has a directory in it.
        self._lock = Lock()
        self._count = 0
        self._look_at = 0.0

    def begin(self, current: Running) -> None:
        current.sandbox = _OnDemand(self._made)
        with self._lock:
            if not self._count and (now := monotonic()) >= self._look_at:
                self._look_at = now + LOOK
                self._home.come_back()
            self._count += 1

    def end(self, current: Running, ending: Ending) -> None:
        lent = cast("_OnDemand", current.sandbox).lent
        try:
            if lent is not None:
                lent.end()
        finally:
            with self._lock:
                self._count -= 1

    def _made(self) -> Sandboxes:
        with self._lock:
            if self._sandboxes is None:
                self._sandboxes = Sandboxes(self._home.sandbox(), self._word)
            return self._sandboxes


class _OnDemand:
    __slots__ = ("_made", "lent")

    def __init__(self, made: Callable[[], Sandboxes]) -> None:
        self._made = made
        self.lent: Lent | None = None

    def __call__(self) -> str:
        if self.lent is None:
            self.lent = self._made().take()
        return self.lent.path
