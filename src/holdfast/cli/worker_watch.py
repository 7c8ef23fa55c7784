"""Seeing that Python files change, by looking at them now and then."""

import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

from holdfast.work.settings import FOLDER

log = logging.getLogger("holdfast")

LOOK: Final = 0.4  # seconds between two looks
MOST_FILES: Final = 20_000
_OTHERS: Final = ("__pycache__", "node_modules", "site-packages", "dist-packages", FOLDER)

Files = Mapping[str, tuple[int, int]]
"""Each file with the time at which it was written, and its size."""


class Watch:
    """The Python files below some directories, without hidden ones, environments, installed packages and sandboxes."""

    def __init__(self, directories: Iterable[str]) -> None:
        self._directories = list(dict.fromkeys(directories))
        self._known = self._last = self._look()
        self._look_at = 0.0
        if len(self._known) == MOST_FILES:
            log.warning("only the first %d Python files below %s are watched", MOST_FILES, self._directories)

    def changed(self) -> list[str]:
        """The files that have changed since the last answer, once a change stands still from one look to the next.

        Looks at most every 0.4 seconds, and not more than a tenth of the time.
        """
        began = monotonic()
        if began < self._look_at:
            return []
        files = self._look()
        self._look_at = began + max(LOOK, 10 * (monotonic() - began))
        is_settled, self._last = files == self._last, files
        if files == self._known or not is_settled:
            return []
        before, self._known = self._known, files
        return sorted(path for path in {*files, *before} if files.get(path) != before.get(path))

    def _look(self) -> Files:
        found: dict[str, tuple[int, int]] = {}
        for path in _python_files(self._directories):
            try:
                status = path.stat()
            except OSError:
                continue  # it has just been removed, or leads nowhere
            found[str(path)] = status.st_mtime_ns, status.st_size
            if len(found) == MOST_FILES:
                break
        return found


def mistake_in(paths: Iterable[str]) -> str:
    """The first of some files that is no Python, and why; nothing if all are, or are no more."""
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
        for here, below, names in os.walk(directory):
            below[:] = sorted(name for name in below if _is_ours(here, name))
            yield from (Path(here, name) for name in names if name.endswith(".py"))


def _is_ours(here: str, name: str) -> bool:
    return not name.startswith(".") and name not in _OTHERS and not Path(here, name, "pyvenv.cfg").exists()
