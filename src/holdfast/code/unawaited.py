"""Calls whose `await` is missing: Python warns of coroutines that were never awaited, and so do our futures; a worker logs the warning."""

import logging
import warnings
from typing import Any, Final, TextIO, TypeVar

from holdfast.code.current import running
from holdfast.text import printable

log = logging.getLogger("holdfast")

_END: Final = "was never awaited"
_START: Final = "coroutine '"
_MOST: Final = 1000
_OWNERS: Final = {"AsyncFunctionJob": "function.", "AsyncEvery": "function.every(...)."}
"""What stands before the name of a method in the advice, where that is not the name of the class."""


async def _nothing() -> None: ...


C = TypeVar("C")


def named(coroutine: C, method: str) -> C:
    """Name a coroutine after the method that made it, for the warning if it is never awaited. Returns it."""
    given: Any = coroutine
    given.__qualname__ = method
    return coroutine


def warn_unawaited(method: str) -> None:
    """Warn that what `method` returned was never awaited, as Python does of a coroutine: never by an exception here."""
    dropped: object = named(_nothing(), method)
    del dropped


class _Log:
    """In place of `warnings.showwarning`: logs the missing awaits of jobs, each once for a method and a job type."""

    def __init__(self, show: Any) -> None:
        self._show = show
        self._logged: set[tuple[str, str]] = set()

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        current, text = running.get(), str(message).partition("\n")[0]
        if current is None or file is not None or not (text.startswith(_START) and text.endswith(_END)):
            self._show(message, category, filename, lineno, file, line)
            return
        name = text.removeprefix(_START).removesuffix(_END).rstrip(" '")
        klass = current.facts.klass
        if (name, klass) not in self._logged and len(self._logged) < _MOST:
            self._logged.add((name, klass))
            call = advice(name)
            log.warning(
                "job %s (%s) called %s without await, so it may not have happened: write `await %s`",
                *map(printable, (current.facts.jid, klass, call, call)),
            )


def advice(name: str) -> str:
    """Return how a call of the method `name` is written: `job.progress(...)` for `AsyncJob.progress`."""
    owner, dot, method = name.rpartition(".")
    owner = owner.rpartition(".")[2]
    if owner.endswith(">") or not dot:
        return f"{method}(...)"
    if method == "__getitem__":
        return f"client.{owner.removeprefix('Async').lower()}[...]"
    start = _OWNERS.get(owner, f"{owner.removeprefix('Async').lower()}.")
    return f"{start}{method}(...)"


def log_unawaited() -> None:
    """Log the missing awaits of the jobs of this process as WARNING, in place of Python's lines on standard error."""
    if not isinstance(warnings.showwarning, _Log):
        warnings.showwarning = _Log(warnings.showwarning)
