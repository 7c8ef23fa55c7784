"""Loading new code in a process of its own, before working processes are replaced by others that would load it.

A process that cannot load its code cannot work: the old ones stay, and `/ready` reports why (`obstacle`).
"""

import logging
import mmap
import os
import signal
import sys
import tempfile
from collections.abc import Iterable
from math import inf
from pathlib import Path
from time import monotonic
from typing import IO, Final

import msgspec

from holdfast.worker import signals
from holdfast.worker.startup import StartupCode

log = logging.getLogger("holdfast")

PATIENCE: Final = 60.0  # seconds in which code must be loaded
MOST_TEXT: Final = 16384
_LONGEST: Final = 512
_PACKAGES: Final = str(Path(__file__).resolve().parents[2])


class _SharedText:
    """A short text in memory that this process shares with those it forks from now on."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _LONGEST)
        self._owner = 0

    def share(self) -> None:
        """Begin again, with a page for this process and for the workers that it forks."""
        self._page, self._owner = mmap.mmap(-1, _LONGEST), os.getpid()

    def renew(self) -> None:
        """Begin again, unless this process was forked to share the page of its parent."""
        if self._owner != os.getppid():
            self._page = mmap.mmap(-1, _LONGEST)

    def write(self, text: str) -> None:
        self._page[:] = text.encode()[:_LONGEST].ljust(_LONGEST, b"\0")

    def read(self) -> str:
        return self._page[:].rstrip(b"\0").decode("utf-8", "ignore")


_obstacle: Final = _SharedText()


def share_obstacle() -> None:
    """Have the workers that this process forks know what it notes."""
    _obstacle.share()


def forget_obstacle() -> None:
    """Forget what other workers noted that were forked by the same program. What the parent of a worker with `--reload` noted is kept."""
    _obstacle.renew()


def obstacle() -> str:
    """Why the code as it is now could not be loaded, in one line; "" if it could, or was not tried."""
    return _obstacle.read()


def note_obstacle(cause: str) -> None:
    """Note why the code as it is now could not be loaded, in one line; "" if it could."""
    _obstacle.write(cause)


def log_failure(text: str, what_follows: str) -> None:
    """Log and note that the code could not be loaded. `what_follows` ends the log line, before the reason."""
    lines = text.splitlines() or [""]
    cause = lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}"
    note_obstacle(f"the new code cannot be loaded: {cause}")
    log.error("the new code cannot be loaded; %s: %s", what_follows, text)


class StartupCheck:
    """Tries to load the code of a worker. `what_follows` ends the log line where that fails."""

    def __init__(self, code: StartupCode, what_follows: str) -> None:
        self._argument = msgspec.json.encode(code).decode()
        self._has_code = bool(code.setup or code.middleware or code.imports)
        self._what_follows = what_follows
        self._pid = 0
        self._kill_at = inf
        self._output: IO[bytes] | None = None

    def start(self, inherited: Iterable[int] = ()) -> bool:
        """Start again. Returns False if there is nothing to load. The process inherits no descriptors."""
        self.end()
        if not (self._has_code and sys.executable):
            return False
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        output, path = self._output.fileno(), os.environ.get("PYTHONPATH")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, _PACKAGES)))}
        self._pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-B", "-m", "holdfast.worker.startup", self._argument],
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)],
            setsigmask=(),
            setsigdef=signals.ALL,
        )
        self._kill_at = monotonic() + PATIENCE
        return True

    def due(self) -> float:
        """When to call `result` at the latest, on the monotonic clock; SIGCHLD may come sooner."""
        return self._kill_at

    def result(self) -> bool | None:
        """Whether the code could be loaded, once; None while that is not known. A failure is logged."""
        if not self._pid:
            return None
        if monotonic() >= self._kill_at:
            os.kill(self._pid, signal.SIGKILL)
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid:
            return None
        is_late = monotonic() >= self._kill_at
        text = self._finish()
        if status == 0:
            note_obstacle("")
            return True
        if is_late:
            text = f"it was not loaded within {PATIENCE:g} s\n{text}"
        log_failure(text or signals.how_ended(os.waitstatus_to_exitcode(status)), self._what_follows)
        return False

    def end(self) -> None:
        """Stop a running check."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._finish()

    def _finish(self) -> str:
        self._pid, self._kill_at = 0, inf
        output, self._output = self._output, None
        if output is None:
            return ""
        with output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - MOST_TEXT))
            return output.read().decode("utf-8", "replace").strip()
