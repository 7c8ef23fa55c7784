"""How a failure is told: its group, its message, and the formatter that chooses both.

The formatter is global, as the code it tells of is, and can be replaced. Whatever a formatter does, the failure is
recorded: one that cannot be used is logged, and the default one tells it.
"""

import asyncio
import logging
import re
import sys
from collections.abc import Callable, Iterable
from concurrent import futures
from pathlib import Path
from typing import Any, Final, Protocol

from holdfast.code.description import LONGEST, name_of, shortened, text_of, traceback_of, whole_text_of
from holdfast.code.endings import Terminated
from holdfast.errors import UsageError
from holdfast.settings import check_name, check_text

log = logging.getLogger("holdfast")

MESSAGE_LIMIT: Final = LONGEST
BRIEF: Final = 400
TEXT_LIMIT: Final = 10_000
"""So much of an exception's own text is kept by the older way to tell it."""
_GROUP_LIMIT: Final = 200
_NOT_IN_NAMES: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FRAME: Final = "  File "
# How a job is called: this package, an event loop, a pool of threads.
_OURS: Final = (
    str(Path(__file__).resolve().parents[1]),
    *(str(Path(str(module.__file__)).resolve().parent) for module in (asyncio, futures)),
)


class FailureFormatter(Protocol):
    """Chooses how the failure of a job is told."""

    def format(self, job: Any, error: BaseException, lines_to_remove: Iterable[str] = ()) -> tuple[str, str]:
        """Return group and message, as `job.fail` takes them.

        `lines_to_remove` are frames, as `traceback.format_stack` writes them, that the message leaves out.
        """
        ...


class ByQueue:
    """The default: failures are grouped by `<queue>-<Error>`, and the message is the traceback."""

    def format(self, job: Any, error: BaseException, lines_to_remove: Iterable[str] = ()) -> tuple[str, str]:
        """Return the group and the traceback without the worker's own frames, cut to 16,000 characters."""
        return group_of(job.queue_name, name_of(error)), describe(error, lines_to_remove)


class ByKlass:
    """The older way: failures are grouped by `<klass>:<Error>`; the message says first what went wrong."""

    def format(self, job: Any, error: BaseException, lines_to_remove: Iterable[str] = ()) -> tuple[str, str]:
        """Return the group, and a message of the error's text (10,000 characters of it), an empty line and the traceback.

        In the traceback the working directory is `.`, and the environment Python runs in `<PREFIX>`.
        """
        text = whole_text_of(error)
        if len(text) > TEXT_LIMIT:
            text = f"{text[:TEXT_LIMIT]}\n... (truncated due to length)"
        frames = [entry for entry in _trace(error, lines_to_remove) if entry.startswith(_FRAME)]
        return clip(f"{job.klass_name}:{name_of(error)}"), cut(f"{text}\n\n{_shortened(''.join(frames))}")


_default: Final = ByQueue()
_chosen: FailureFormatter = _default


def failure_formatter() -> FailureFormatter:
    """Return the formatter in use in this process."""
    return _chosen


def use_failure_formatter(formatter: FailureFormatter | None) -> FailureFormatter:
    """Tell failures with `formatter` from now on, None: with the default one; answers the one in use before.

    A worker is told by its `--setup`, whose children inherit it. Raises UsageError for what has no `format`.
    """
    global _chosen
    if formatter is not None and not callable(getattr(formatter, "format", None)):
        raise UsageError(
            f"a failure formatter has a method format(job, error, lines_to_remove), not {formatter!r}"
        )
    before, _chosen = _chosen, _default if formatter is None else formatter
    return before


def failure_of(error: BaseException, queue: str, job: Callable[[], Any]) -> tuple[str, str]:
    """Return group and message of a job of `queue` that raised `error`; `job` makes what a formatter is shown."""
    if _chosen is not _default:
        try:
            group, message = _chosen.format(job(), error, ())
            return clip(check_name("group", clip(group))), cut(message)
        except Terminated:
            raise
        except BaseException as problem:
            # It is the user's code; that it is wrong must not hide why the job failed.
            log.error(
                "the failure formatter %s cannot be used; taking the default\n%s",
                text_of(_chosen),
                describe(problem),
            )
    return group_of(queue, name_of(error)), describe(error)


def describe(error: BaseException, lines_to_remove: Iterable[str] = ()) -> str:
    """The traceback of `error` without the worker's own frames, cut to what the store keeps."""
    return cut("".join(_trace(error, lines_to_remove)))


def _trace(error: BaseException, lines_to_remove: Iterable[str]) -> list[str]:
    entries = traceback_of(error, _OURS)
    # The code below a frame may be marked in one and not in the other: where it stands tells which it is.
    unwanted = {line.partition("\n")[0] for line in lines_to_remove}
    return [
        entry for entry in entries if not (entry.startswith(_FRAME) and entry.partition("\n")[0] in unwanted)
    ]


def _shortened(text: str) -> str:
    here = str(Path.cwd())
    places = [(sys.prefix, "<PREFIX>")] + ([(here, ".")] if len(here) > 1 else [])
    # An environment usually lies below the working directory: the longer name goes first.
    for place, short in sorted(places, key=lambda pair: -len(pair[0])):
        text = text.replace(place, short)
    return text


def brief(error: BaseException) -> str:
    """One line about `error` for the log, whatever its text holds or does."""
    text = " ".join(text_of(error)[: 8 * BRIEF].split())
    return check_text("error", f"{name_of(error)[:BRIEF]}: {text[:BRIEF]}")


def cut(message: str) -> str:
    """A failure message as the store keeps it, shortened: its beginning and its end say most. Raises UsageError."""
    message = check_text("message", shortened(message) if type(message) is str else message)
    return shortened(message)


def group_of(queue: str, name: str) -> str:
    """The failure group `<queue>-<name>`, within the 200 bytes of a name."""
    return clip(f"{queue}-{name}")


def clip(group: str) -> str:
    """As much of the name of a group as the store takes; `?` stands for what no name may hold."""
    return _NOT_IN_NAMES.sub("?", group).encode()[:_GROUP_LIMIT].decode("utf-8", "ignore")
