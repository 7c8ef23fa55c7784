"""Directories for jobs: each job finds its own empty, and what it leaves there is removed.

`<workdir>/holdfast-workers/sandbox-<n>` belongs to child n of a worker, which makes it its working directory. Where a
child performs many jobs at once they share that one, and each has a directory of its own in it. A directory that was left
clean carries a mark, an mtime that nothing else gives it, and is not looked into as long as it does.
"""

import fcntl
import logging
import os
import re
import shutil
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final
from weakref import WeakSet

from holdfast.errors import UsageError
from holdfast.work.settings import FOLDER

log = logging.getLogger("holdfast")

_CLEAN: Final = 1_000_000_007  # ns after the epoch
_MOST_WORKERS: Final = 1000  # in one directory
_SANDBOX: Final = re.compile(r"sandbox-\d+(\.\d+)?")


def clean(path: str | Path, keep: Callable[[str], object] | None = None) -> None:
    """Remove everything in the directory `path`, but not the directory, nor entries that `keep` says yes to. Raises OSError."""
    try:
        _remove_all(path, keep)
    except PermissionError:
        # Somebody protected a directory: it is ours all the same.
        _unprotect(path, keep)
        _remove_all(path, keep)


def _remove_all(path: str | Path, keep: Callable[[str], object] | None) -> None:
    with os.scandir(path) as entries:
        for entry in list(entries):
            if keep is not None and keep(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry).unlink()


def _unprotect(path: str | Path, keep: Callable[[str], object] | None) -> None:
    """Let its owner do everything in a directory and those below it, each before it is looked into."""
    _open(path)
    for folder, names, _ in os.walk(path):
        if keep is not None:
            names[:] = [name for name in names if not keep(name)]
            keep = None
        for name in names:
            _open(f"{folder}/{name}")


def _open(path: str | Path) -> None:
    mode = os.lstat(path).st_mode
    if stat.S_ISDIR(mode) and not _is_open(mode):
        Path(path).chmod(stat.S_IMODE(mode) | stat.S_IRWXU)


def _is_open(mode: int) -> bool:
    """Whether the owner of a directory may do everything there."""
    return mode & stat.S_IRWXU == stat.S_IRWXU


@contextmanager
def create_sandbox(path: str | Path, clean_fn: Callable[[str], object] | None = None) -> Generator[str]:
    """A block in which the directory `path` exists, and which finds it empty; it is emptied again at the end.

    `clean_fn` empties it, `clean` unless given. Raises OSError, and NotADirectoryError for what is there and is none.
    """
    empty: Callable[[str], object] = clean_fn or clean
    directory = str(path)
    _make(directory)
    empty(directory)
    try:
        yield directory
    finally:
        empty(directory)


def _make(path: str) -> None:
    Path(path).mkdir(parents=True, exist_ok=True)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        # A link may lead anywhere, and what it leads to would be emptied.
        raise NotADirectoryError(f"{path} is in the way: it is a link")
    _open(path)


class Sandbox:
    """One directory that is empty whenever `tidy` returned. It is made by the first."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._lock = -1
        self._locked: os.stat_result | None = None

    def tidy(self) -> None:
        """Make sure that the directory is there and empty; it is looked into only if it changed. Raises OSError."""
        if self._is_clean():
            return
        _make(self.path)
        if self._lock >= 0 and not _is_same(self._lock, os.lstat(self.path)):
            # A job closed it, or put another directory in its place.
            self.leave()
            self.claim()
        self._clean()
        os.utime(self.path, ns=(_CLEAN, _CLEAN))
        log.debug("sandbox %s is clean", self.path)

    def _is_clean(self) -> bool:
        try:
            # Asked by its descriptor it answers sooner. One that was removed has no links; a job may have closed it.
            found = os.fstat(self._lock) if self._lock >= 0 else os.lstat(self.path)
        except OSError:
            return False
        return found.st_mtime_ns == _CLEAN and found.st_nlink > 0 and _is_open(found.st_mode)

    def _clean(self) -> None:
        clean(self.path)

    def enter(self) -> None:
        """Make it the working directory of this process, also after a job went elsewhere. Raises OSError."""
        os.chdir(self._lock if self._lock >= 0 else self.path)

    def claim(self, *, surely: bool = False) -> bool:
        """Keep other workers out until this process ends. Answers whether it was free.

        Where directories cannot be locked nobody knows: then it is taken for free, unless that must be sure.
        """
        _make(self.path)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._locked = os.fstat(self._lock)
        _CLAIMED.add(self)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.leave()
            return False
        except OSError as error:
            log.debug("sandbox %s cannot be locked here: %s", self.path, error)
            return not surely
        return True

    def leave(self) -> None:
        """Let others have it. In a process that was forked since, this leaves it to the one that claimed it."""
        lock, self._lock = self._lock, -1
        if lock >= 0 and _is_same(lock, self._locked):
            os.close(lock)


_CLAIMED: Final[WeakSet[Sandbox]] = WeakSet()


def _let_go() -> None:
    for sandbox in _CLAIMED:
        sandbox.leave()


# What a job forks may outlive the worker; it would keep the sandbox from whoever comes after that.
os.register_at_fork(after_in_child=_let_go)


def _is_same(descriptor: int, opened: os.stat_result | None) -> bool:
    """Whether a descriptor is still what was opened: a job may have closed it, and opened something else."""
    try:
        return opened is not None and os.path.samestat(os.fstat(descriptor), opened)
    except OSError:
        return False


def claimed(path: str | Path, kind: type[Sandbox] = Sandbox) -> Sandbox:
    """The sandbox `path`, emptied; while another worker has that one, `path` with a number. Raises UsageError."""
    try:
        for sandbox in (kind(f"{path}.{n}" if n else path) for n in range(_MOST_WORKERS)):
            if sandbox.claim():
                sandbox.tidy()
                return sandbox
            log.info("another worker uses the directory %s", sandbox.path)
    except OSError as error:
        raise _unusable(path, error) from error
    raise UsageError(f"workdir: there are {_MOST_WORKERS} workers in {Path(path).parent}")


def tidy_unclaimed(workdir: str | Path) -> None:
    """Empty the directories below `workdir` that no process has any more: children that were killed left them as they were."""
    base = Path(workdir) / FOLDER
    try:
        found = [path for path in base.iterdir() if _SANDBOX.fullmatch(path.name)]
    except OSError as error:
        log.debug("the sandboxes in %s cannot be listed: %s", base, error)
        return
    for sandbox in map(Sandbox, found):
        try:
            if sandbox.claim(surely=True):
                sandbox.tidy()
        except OSError as error:
            log.warning("the sandbox %s cannot be emptied: %s", sandbox.path, error)
        finally:
            sandbox.leave()


def check_base(workdir: str | Path) -> None:
    """Find out whether sandboxes can be made below `workdir`. Raises UsageError."""
    base = Path(workdir) / FOLDER
    try:
        _make(str(base))
    except OSError as error:
        raise _unusable(base, error) from error
    if not os.access(base, os.W_OK | os.X_OK):
        raise UsageError(f"workdir: {base} cannot be written; a worker keeps its sandboxes there")


def _unusable(path: str | Path, error: OSError) -> UsageError:
    return UsageError(f"workdir: the sandbox {path} cannot be made: {error.strerror or error}")


class Base(Sandbox):
    """The directory of a worker without children. It leaves alone what belongs to others there."""

    def _clean(self) -> None:
        clean(self.path, keep=_SANDBOX.fullmatch)


class Sandboxes:
    """The directories of jobs that are performed side by side, `<base>/<word>-<i>`, taken and given back."""

    def __init__(self, base: str | Path, word: str) -> None:
        self._base = base
        self._word = word
        self._free: list[int] = []
        self._numbers = count()

    def take(self) -> "Lent":
        """An empty directory that nobody else has. Raises OSError."""
        try:
            number = self._free.pop()
        except IndexError:
            number = next(self._numbers)
        lent = Lent(f"{self._base}/{self._word}-{number}", lambda: self._free.append(number))
        try:
            lent.tidy()
        except BaseException:
            lent.give_back()
            raise
        return lent


class Lent(Sandbox):
    """A directory that is given back."""

    def __init__(self, path: str, give_back: Callable[[], None]) -> None:
        super().__init__(path)
        self.give_back = give_back

    def end(self) -> None:
        """Empty it and give it back. Raises OSError."""
        try:
            self.tidy()
        finally:
            self.give_back()
