"""Sandboxes: directories for the files of one job, which are empty when it begins.

`<base>/sandbox-<n>` belongs to child n of a worker. Where a child performs many jobs at once, each has a directory of its own in it.
Others may write to the directory that the base lies in; so the base and all below it are this user's alone (0700), are opened without
following links, and are emptied through their descriptors. A directory is not read as long as its ctime is that of the moment when it was
empty: every change of it sets that to the present, and a job cannot set it back.
"""

import errno
import fcntl
import logging
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final
from weakref import WeakSet

from holdfast.errors import UsageError

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def clean(path: str | Path) -> None:
    """Remove everything in the directory `path`, but not the directory. Raises OSError, also for a link."""
    descriptor = _open(str(path), None)
    try:
        empty(descriptor)
    finally:
        os.close(descriptor)


def _open(name: str, within: int | None) -> int:
    """Open a directory in which its owner may do everything. Raises OSError; a link is not followed."""
    try:
        return os.open(name, _OPEN, dir_fd=within)
    except PermissionError:
        if not stat.S_ISDIR(_mode_of(name, within)):
            raise
        os.chmod(name, stat.S_IRWXU, dir_fd=within)
        return os.open(name, _OPEN, dir_fd=within)


def _mode_of(name: str, within: int | None) -> int:
    return os.stat(name, dir_fd=within, follow_symlinks=False).st_mode


def empty(descriptor: int) -> None:
    """Remove everything in an open directory. Raises OSError."""
    try:
        _remove_all(descriptor)
    except PermissionError:
        # A job protected a directory: it is ours all the same.
        _unprotect(descriptor)
        _remove_all(descriptor)


def _remove_all(descriptor: int) -> None:
    for name in os.listdir(descriptor):
        if stat.S_ISDIR(_mode_of(name, descriptor)):
            shutil.rmtree(name, dir_fd=descriptor)
        else:
            os.unlink(name, dir_fd=descriptor)


def _unprotect(descriptor: int) -> None:
    """Let its owner do everything in an open directory and those below it."""
    os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | stat.S_IRWXU)
    for name in os.listdir(descriptor):
        if stat.S_ISDIR(_mode_of(name, descriptor)):
            below = _open(name, descriptor)
            try:
                _unprotect(below)
            finally:
                os.close(below)


class PrivateDirectory:
    """A private directory of this user, relative to `within` if that is given, else at `path`."""

    def __init__(self, path: str | Path, within: "PrivateDirectory | None" = None) -> None:
        self.path = str(path)
        self._within = within
        self._descriptor = -1
        self._opened: os.stat_result | None = None

    def open(self) -> int:
        """Return its descriptor; the directory is made if missing, and opened again if a job closed or removed it. Raises OSError."""
        if self._descriptor >= 0 and not is_same(self._descriptor, self._opened):
            self._descriptor = -1
        if self._descriptor >= 0 and os.fstat(self._descriptor).st_nlink == 0:
            self.close()
        if self._descriptor < 0:
            self._descriptor = self._open()
            self._opened = os.fstat(self._descriptor)
        return self._descriptor

    def _open(self) -> int:
        name, within = self.path, None
        if self._within is not None:
            name, within = Path(self.path).name, self._within.open()
        with suppress(FileExistsError):
            os.mkdir(name, stat.S_IRWXU, dir_fd=within)
        if not stat.S_ISDIR(_mode_of(name, within)):
            raise NotADirectoryError(errno.ENOTDIR, "a file or a link is in the way", self.path)
        descriptor = _open(name, within)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "it belongs to another user", self.path)
            if stat.S_IMODE(found.st_mode) != stat.S_IRWXU:
                os.fchmod(descriptor, stat.S_IRWXU)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def close(self) -> None:
        """Close its descriptor, if that is still its own."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0 and is_same(descriptor, self._opened):
            os.close(descriptor)


def is_same(descriptor: int, opened: os.stat_result | None) -> bool:
    """Whether a descriptor is still what was opened: a job may have closed it, and opened something else."""
    try:
        return opened is not None and os.path.samestat(os.fstat(descriptor), opened)
    except OSError:
        return False


log = logging.getLogger("holdfast")

_MOST_WORKERS: Final = 1000  # in one directory
_SANDBOX: Final = re.compile(r"sandbox-\d+(\.\d+)?")


@contextmanager
def create_sandbox(path: str | Path, clean_fn: Callable[[str], object] | None = None) -> Generator[str]:
    """A block in which the directory `path` exists, and which finds it empty; it is emptied again at the end.

    `clean_fn` empties it, `clean` unless given. Raises OSError, and NotADirectoryError for what is there and is none.
    """
    empty_it: Callable[[str], object] = clean_fn or clean
    directory = str(path)
    Path(path).mkdir(parents=True, exist_ok=True)
    if not stat.S_ISDIR(os.lstat(directory).st_mode):
        # A link may lead anywhere, and what it leads to would be emptied.
        raise NotADirectoryError(f"{path} is in the way: it is a link")
    empty_it(directory)
    try:
        yield directory
    finally:
        empty_it(directory)


class Sandbox(PrivateDirectory):
    """One directory, which is empty whenever `tidy` has returned; the first call makes it."""

    _emptied_at = 0  # its ctime then, in nanoseconds; 0: it must be read

    def tidy(self) -> None:
        """Make sure that the directory exists and is empty; it is read only if it may have changed. Raises OSError."""
        if self._emptied_at and is_same(self._descriptor, self._opened):
            found = os.fstat(self._descriptor)
            if found.st_ctime_ns == self._emptied_at and found.st_nlink:
                return
        descriptor = self.open()
        if os.listdir(descriptor):  # noqa: PTH208
            empty(descriptor)
            log.debug("sandbox %s is empty now", self.path)
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != stat.S_IRWXU:
            os.fchmod(descriptor, stat.S_IRWXU)
        changed_at = os.fstat(descriptor).st_ctime_ns
        # The clock of ctime ticks every few milliseconds: a change within the same tick would leave it as it is.
        self._emptied_at = changed_at if changed_at < _tick() else 0

    def _open(self) -> int:
        descriptor = super()._open()
        if self in _CLAIMED:
            self._lock(descriptor)
        return descriptor

    def enter(self) -> None:
        """Make it the working directory of this process. Raises OSError."""
        os.chdir(self.open())

    def claim(self, *, surely: bool = False) -> bool:
        """Keep other workers out until this process ends. Return whether it was free.

        Where directories cannot be locked that is unknown: then it counts as free, unless it must be certain. Raises OSError.
        """
        is_free = self._lock(self.open())
        if is_free is False:
            self.close()
            return False
        _CLAIMED.add(self)
        return is_free is True or not surely

    def _lock(self, descriptor: int) -> bool | None:
        """Whether it could be locked; None where there are no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            log.debug("sandbox %s cannot be locked here: %s", self.path, error)
            return None
        return True

    def leave(self) -> None:
        """Release the claim. In a process that was forked since, the claim of the other one stays."""
        _CLAIMED.discard(self)
        self.close()


def _tick() -> int:
    """Return a moment, in nanoseconds, of which the clock of the file system is not behind: its ticks last up to 10 ms."""
    return time.time_ns() - 10_000_000


_CLAIMED: Final[WeakSet[Sandbox]] = WeakSet()


def _release_all() -> None:
    for sandbox in list(_CLAIMED):
        sandbox.leave()


# A process that a job forks may outlive the worker; it would keep the sandbox from the next worker.
os.register_at_fork(after_in_child=_release_all)


def claimed(path: str | Path) -> Sandbox:
    """Return the sandbox `path`, emptied; while another worker has that one, `path` with a number. Raises UsageError."""
    base = PrivateDirectory(Path(path).parent)
    try:
        for sandbox in (Sandbox(f"{path}.{n}" if n else path, base) for n in range(_MOST_WORKERS)):
            if sandbox.claim():
                sandbox.tidy()
                return sandbox
            log.info("another worker uses the directory %s", sandbox.path)
    except OSError as error:
        raise _unusable(path, error) from error
    raise UsageError(f"workdir: there are {_MOST_WORKERS} workers in {Path(path).parent}")


def tidy_unclaimed(base: str | Path) -> None:
    """Empty the sandboxes in `base` that no process claims: children that were killed left them as they were."""
    folder = PrivateDirectory(base)
    try:
        found = [name for name in os.listdir(folder.open()) if _SANDBOX.fullmatch(name)]  # noqa: PTH208
    except OSError as error:
        log.debug("the sandboxes in %s cannot be listed: %s", base, error)
        return
    for sandbox in (Sandbox(f"{base}/{name}", folder) for name in found):
        try:
            if sandbox.claim(surely=True):
                sandbox.tidy()
        except OSError as error:
            log.warning("the sandbox %s cannot be emptied: %s", sandbox.path, error)
        finally:
            sandbox.leave()
    folder.close()


def check_base(base: str | Path, children: int = 0) -> None:
    """Check that sandboxes can be made in `base`, for that number of children. Raises UsageError."""
    folder = PrivateDirectory(base)
    try:
        folder.open()
        for number in range(children):
            sandbox = Sandbox(f"{base}/sandbox-{number}", folder)
            sandbox.open()
            sandbox.close()
    except OSError as error:
        raise _unusable(error.filename or base, error) from error
    finally:
        folder.close()
    if not os.access(base, os.W_OK | os.X_OK):
        raise UsageError(f"workdir: {base} cannot be written; a worker keeps its sandboxes there")


def _unusable(path: str | Path, error: OSError) -> UsageError:
    return UsageError(f"workdir: the sandbox {path} cannot be made: {error.strerror or error}")


class Sandboxes:
    """The directories `<base>/<word>-<i>` of jobs that run side by side."""

    def __init__(self, base: PrivateDirectory, word: str) -> None:
        self._base = base
        self._word = word
        self._free: list[int] = []
        self._numbers = count()

    def take(self) -> "Lent":
        """Take an empty directory. Raises OSError."""
        try:
            number = self._free.pop()
        except IndexError:
            number = next(self._numbers)
        lent = Lent(f"{self._base.path}/{self._word}-{number}", self._base, lambda: self._free.append(number))
        try:
            lent.tidy()
        except BaseException:
            lent.give_back()
            raise
        return lent


class Lent(Sandbox):
    """A directory of `Sandboxes`, which is returned to them."""

    def __init__(self, path: str, within: PrivateDirectory, give_back: Callable[[], None]) -> None:
        super().__init__(path, within)
        self.give_back = give_back

    def end(self) -> None:
        """Empty it and return it. Raises OSError."""
        try:
            self.tidy()
        finally:
            self.close()
            self.give_back()


class Home:
    """The directories of one process: its working directory, and its sandbox, which is made when something needs it.

    With `works_in_sandbox` they are the same.
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
        """Return the sandbox of this process. Raises UsageError, OSError."""
        with self._lock:
            if self._sandbox is None:
                self._sandbox = claimed(self._path)
            return self._sandbox

    def come_back(self) -> None:
        """Return to the working directory of the start, wherever the last job went."""
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
        """Log that a directory cannot be used, once until it can."""
        if not self._is_missed:
            where = self._path if self.works_in_sandbox else self._directory
            log.error("the directory %s cannot be used: %s; jobs run without it", where, error)
        self._is_missed = True

    def other(self) -> "Home":
        """Return the directories of a process that was forked from this one for a job."""
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
