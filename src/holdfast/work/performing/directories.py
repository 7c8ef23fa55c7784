"""Directories of this user's alone, emptied through their descriptors: no link in them, or in their place, is ever followed."""

import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

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
