"""The user's code that a worker loads before it takes jobs: the setup hook, middleware, the modules of `--import`; also
tried in a process of its own before a reload.

Run as a program, this loads what its one argument describes and ends with 0, or prints why it cannot and ends with 1
(`startup_check` runs it before children are replaced).

A process that cannot load its code cannot work: the old ones stay, and `/ready` reports why (`obstacle`).
"""

import importlib
import logging
import mmap
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from math import inf
from operator import attrgetter
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final, TypeVar

import msgspec

from holdfast.errors import StartFailed, UsageError
from holdfast.work import signals
from holdfast.work.greenlets import patch

T = TypeVar("T")

_OURS: Final = str(Path(__file__).resolve().parents[1])
_IMPORTLIB: Final = str(Path(importlib.__file__).parent)


class StartupCode(msgspec.Struct, frozen=True):
    """What a worker loads at its start: directories to import from, then names in the form of their flags."""

    root: str
    paths: tuple[str, ...] = ()
    setup: str = ""
    middleware: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    pool: str = "process"

    def load(self) -> None:
        """Load all of it. Raises StartFailed, UsageError."""
        search_first((*self.paths, self.root))
        if self.setup:
            call_setup(self.setup)
        for text in self.middleware:
            load_middleware(text)
        import_modules(self.imports)


def search_first(directories: Iterable[str]) -> None:
    """Put directories in front of the module search path, in this order."""
    for path in reversed(list(directories)):
        if path in sys.path:
            sys.path.remove(path)
        sys.path.insert(0, path)


def call_setup(text: str) -> None:
    """Call the hook of `--setup`. Raises UsageError, StartFailed."""
    flag = f"--setup {text}"
    hook = _load(flag, text, "callable")
    if not callable(hook):
        raise UsageError(f"{flag}: expected module:callable, got {type(hook).__name__}")
    _run(flag, hook)


def load_middleware(text: str) -> Any:
    """Return the object that `--middleware` names; of a class, an object of it. Raises UsageError, StartFailed."""
    flag = f"--middleware {text}"
    found = _load(flag, text, "object")
    return _run(flag, found) if isinstance(found, type) else found


def import_modules(names: Iterable[str]) -> None:
    """Import the modules of `--import`, so that forked processes share them. Raises StartFailed."""
    for name in names:
        _import(f"--import {name}", name)


def _load(flag: str, text: str, what: str) -> Any:
    module, colon, path = text.partition(":")
    if not (module and colon and path):
        raise UsageError(f"{flag}: expected module:{what}")
    loaded = _import(flag, module)
    try:
        return attrgetter(path)(loaded)
    except AttributeError as error:
        raise StartFailed(f"{flag}: {error}; expected module:{what}") from error


def _import(flag: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name or name.startswith(f"{error.name}."):
            raise StartFailed(
                f"{flag}: {error}. Start the worker where it lies, or name its directory with --path."
            ) from error
        raise _failed(flag, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(flag, error) from error


def _run(flag: str, function: Callable[[], T]) -> T:
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise _failed(flag, error) from error


def _failed(flag: str, error: BaseException) -> StartFailed:
    return StartFailed(f"{flag} failed\n{user_traceback(error).rstrip()}")


def user_traceback(error: BaseException) -> str:
    """The traceback of an error without the frames of holdfast and of the import system."""
    told = traceback.TracebackException.from_exception(error)
    _keep_frames_of_user(told)
    return "".join(told.format())


def _keep_frames_of_user(told: traceback.TracebackException | None) -> None:
    if told is None:
        return
    frames = [frame for frame in told.stack if not frame.filename.startswith((_OURS, _IMPORTLIB, "<frozen"))]
    told.stack = traceback.StackSummary.from_list(frames)
    _keep_frames_of_user(told.__cause__)
    _keep_frames_of_user(told.__context__)


def main(text: str) -> int:
    """Load what `text`, the JSON of a StartupCode, describes. Returns the exit status; why not is printed."""
    code = msgspec.json.decode(text, type=StartupCode)
    try:
        os.chdir(code.root)
        if code.pool == "gevent":
            patch()
        code.load()
    except (StartFailed, UsageError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        return 1
    return 0


if __name__ == "__main__":
    # Threads that the user's code has started would keep an ordinary end waiting.
    status = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(status)


log = logging.getLogger("holdfast")

PATIENCE: Final = 60.0  # seconds in which code must be loaded
MOST_TEXT: Final = 16384
_LONGEST: Final = 512
_PACKAGES: Final = str(Path(__file__).resolve().parents[2])


class _SharedText:
    """A short text in memory that this process shares with those it forks from now on."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _LONGEST)

    def write(self, text: str) -> None:
        self._page[:] = text.encode()[:_LONGEST].ljust(_LONGEST, b"\0")

    def read(self) -> str:
        return self._page[:].rstrip(b"\0").decode("utf-8", "ignore")


_obstacle: Final = _SharedText()


def obstacle() -> str:
    """Why the code as it is now could not be loaded, in one line; "" if it could, or was not tried."""
    return _obstacle.read()


class StartupCheck:
    """Tries to load the code of a worker. `what_follows` ends the log line where that fails."""

    def __init__(self, code: StartupCode, what_follows: str) -> None:
        self._argument = msgspec.json.encode(code).decode()
        self._has_code = bool(code.setup or code.middleware or code.imports)
        self._what_follows = what_follows
        self._pid = 0
        self._kill_at = inf
        self._output: IO[bytes] | None = None

    def start(self) -> bool:
        """Start again. Returns False if there is nothing to load."""
        self.end()
        if not (self._has_code and sys.executable):
            return False
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        output, path = self._output.fileno(), os.environ.get("PYTHONPATH")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, _PACKAGES)))}
        self._pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-B", "-m", "holdfast.work.startup", self._argument],
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
            _obstacle.write("")
            return True
        if is_late:
            text = f"it was not loaded within {PATIENCE:g} s\n{text}"
        text = text or signals.how_ended(os.waitstatus_to_exitcode(status))
        lines = text.splitlines()
        cause = lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}"
        _obstacle.write(f"the new code cannot be loaded: {cause}")
        log.error("the new code cannot be loaded; %s: %s", self._what_follows, text)
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
