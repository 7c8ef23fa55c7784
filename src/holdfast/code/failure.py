"""Describe a failure: its group and its message, safe against any exception and any code of it.

An exception comes from the job's code: its text may have 100 MB, its `__str__` may raise SystemExit, its causes may form a
cycle or never end. So Python's formatter gets plain copies, with a limited number of exceptions, frames and characters.
Making them runs no code of an exception but that which returns its text and its notes.

The formatter is global and can be replaced. A failure is always recorded: if a formatter raises, that is logged, and the
default formatter is used.
"""

import asyncio
import linecache
import logging
import re
import stat
import sys
import traceback
from collections.abc import Callable, Iterable
from concurrent import futures
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, cast

from holdfast.code.outcomes import Terminated
from holdfast.errors import UsageError
from holdfast.settings import check_name, check_text

LONGEST: Final = 16_000
"""How many characters of a text are kept, from its beginning and its end."""
_HEAD: Final = 4_000
_MAX_EXCEPTIONS: Final = 30  # of one failure: causes and members of groups together
_MAX_NOTES: Final = 30
_MAX_FRAMES: Final = 1_000
_LARGEST_FILE: Final = 16 << 20
_NO_TEXT: Final = "(its text is not available)"
_ENOUGH: Final = f"(only {_MAX_EXCEPTIONS} of its exceptions are shown)"

_name: Final = type.__dict__["__name__"].__get__
_qualname: Final = type.__dict__["__qualname__"].__get__
_module: Final = type.__dict__["__module__"].__get__
_cause: Final = BaseException.__dict__["__cause__"].__get__
_context: Final = BaseException.__dict__["__context__"].__get__
_suppressed: Final = BaseException.__dict__["__suppress_context__"].__get__
_traceback: Final = BaseException.__dict__["__traceback__"].__get__
_members: Final = BaseExceptionGroup.__dict__["exceptions"].__get__
"""Readers of attributes of exceptions, for classes that redefine them."""

_PLACE: Final = ("filename", "lineno", "offset", "text", "end_lineno", "end_offset", "msg")
_HINTS: Final[dict[type, tuple[str, ...]]] = {
    NameError: ("name",),
    AttributeError: ("name", "obj"),
    **dict.fromkeys((ImportError, ModuleNotFoundError), ("name", "name_from")),
    **dict.fromkeys((SyntaxError, IndentationError, TabError), _PLACE),
}
"""Attributes of built-in exceptions that Python's formatter uses in addition to their text."""


def name_of(error: BaseException) -> str:
    """Return the name of the class of an exception."""
    return str(_name(type(error)))


def raised_by(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """Return an exception as `logging` takes it (`exc_info`), without running code of its class."""
    return type(error), error, _traceback(error)


def text_of(thing: object) -> str:
    """Return `str(thing)`, shortened. Raises nothing but Terminated."""
    return shortened(whole_text_of(thing))


def whole_text_of(thing: object) -> str:
    """Return `str(thing)`, however long. Raises nothing but Terminated."""
    try:
        return str.__str__(str(thing))
    except Terminated:
        raise
    except BaseException:
        return _NO_TEXT


def shortened(text: str) -> str:
    """Return a text of at most about 16,000 characters: the beginning and the end of a longer one."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:_HEAD]}\n… cut …\n{text[_HEAD - LONGEST :]}"


def traceback_of(error: BaseException, ours: tuple[str, ...] = ()) -> list[str]:
    """Return the entries of the traceback of an exception, as `traceback.format_exception` makes them.

    Outer frames whose files begin with one of `ours` are left out. Raises nothing but Terminated.
    """
    try:
        copy = _Copying().copy(error, ours)
        return traceback.format_exception(type(copy), copy, copy.__traceback__)
    except Terminated:
        raise
    except BaseException:
        return [f"{name_of(error)}: {text_of(error)}\n(its traceback is not available)\n"]


class _Copying:
    """Make plain copies of an exception, its causes, contexts and group members."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def copy(self, error: BaseException, ours: tuple[str, ...] = ()) -> BaseException:
        """Return a copy that can be formatted without running code of the exception's class."""
        self._seen.add(id(error))
        kind, notes = type(error), _notes_of(error)
        members = [self._copy_related(member, notes) for member in _members_of(error)]
        made = _made(kind, [member for member in members if member is not None])
        made.text_of_original = text_of(error)
        _copy_hints(error, made)
        made.__traceback__ = _trimmed(_traceback(error), ours)
        cause, context = _cause(error), _context(error)
        made.__cause__ = self._copy_related(cause, notes)
        made.__context__ = (
            None if cause is not None or _suppressed(error) else self._copy_related(context, notes)
        )
        made.__suppress_context__ = bool(_suppressed(error))
        if notes:
            made.__notes__ = notes
        return cast("BaseException", made)

    def _copy_related(self, error: BaseException | None, notes: list[str]) -> BaseException | None:
        """Return the copy of a cause, context or member; None if it was copied already, or there are too many."""
        if error is None or id(error) in self._seen:
            return None
        if len(self._seen) < _MAX_EXCEPTIONS:
            return self.copy(error)
        if _ENOUGH not in notes:
            notes.append(_ENOUGH)
        return None


def _members_of(error: BaseException) -> tuple[BaseException, ...]:
    # One more than can be shown, so that the limit is noticed.
    members: tuple[BaseException, ...] = ()
    if issubclass(type(error), BaseExceptionGroup):
        members = _members(error)[: _MAX_EXCEPTIONS + 1]
    return members


def _made(kind: type[BaseException], members: list[BaseException]) -> Any:
    if members:
        return _kind_of(ExceptionGroup, *_names_of(kind))("", members)
    base: Any = next((base for base in _HINTS if kind is base), Exception)
    return _kind_of(base, *_names_of(kind))()


def _names_of(kind: type[BaseException]) -> tuple[str, str]:
    module, name = _module(kind), _qualname(kind)
    return text_of(module)[:200] if type(module) is str else "?", text_of(name)[:200]


@lru_cache(maxsize=256)
def _kind_of(base: Any, module: str, qualname: str) -> Any:
    """Return a class that is formatted under that name, with `text_of_original` of its object as text."""
    return type("Copy", (base,), {"__module__": module, "__qualname__": qualname, "__str__": _text})


def _text(copy: BaseException) -> str:
    return str(vars(copy)["text_of_original"])


def _copy_hints(error: BaseException, made: Any) -> None:
    base = cast("type", type(made).__base__)
    if issubclass(type(error), base):
        for name in _HINTS.get(base, ()):
            value = getattr(error, name, None)
            setattr(made, name, shortened(value) if type(value) is str else value)


def _notes_of(error: BaseException) -> list[str]:
    try:
        notes: Any = getattr(error, "__notes__", None)
        if not isinstance(notes, (list, tuple)):
            return []
        return [text_of(note) for note in cast("list[object]", notes[:_MAX_NOTES])]
    except Terminated:
        raise
    except BaseException:
        return ["(its notes are not available)"]


def _trimmed(trace: TracebackType | None, ours: tuple[str, ...]) -> TracebackType | None:
    """Return a traceback without outer frames in `ours`, and only both ends of a very long one."""
    first = trace
    while first is not None and _file_of(first).startswith(ours or ("\0",)):
        first = first.tb_next
    entries: list[TracebackType] = []
    entry = first = first or trace
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    if len(entries) > _MAX_FRAMES:
        entries, first = [*entries[: _MAX_FRAMES // 2], *entries[-(_MAX_FRAMES // 2) :]], None
        for entry in reversed(entries):
            first = TracebackType(first, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    for file in {_file_of(entry) for entry in entries}:
        _prevent_reading(file)
    return first


def _file_of(entry: TracebackType) -> str:
    return str.__str__(entry.tb_frame.f_code.co_filename)


def _prevent_reading(file: str) -> None:
    """Keep the formatter from reading a pipe, a device or a huge file: the file name of a frame can be anything."""
    if file in linecache.cache:
        return
    try:
        found = Path(file).stat()
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_FILE:
        linecache.cache[file] = (0, None, [], file)


log = logging.getLogger("holdfast")

BRIEF: Final = 400
TEXT_LIMIT: Final = 10_000
"""How many characters of the text of an exception `ByKlass` keeps."""
_GROUP_LIMIT: Final = 200
_NOT_IN_NAMES: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FRAME: Final = "  File "
# The code that calls jobs: this package, an event loop, a pool of threads.
_OURS: Final = (
    str(Path(__file__).resolve().parents[1]),
    *(str(Path(str(module.__file__)).resolve().parent) for module in (asyncio, futures)),
)


_LAST_FRAMES: Final = re.compile(
    r'.*^([ |+]*)  File "[^\n]*\n(?:\1  [^\n]*(?:\n|\Z))*', re.MULTILINE | re.DOTALL
)


def error_line(message: str) -> str:
    """Return the line of a failure message that names the error, at most 300 characters.

    Of a traceback it is the one behind the last frame: the text of an exception may have more lines, and notes follow it.
    Of any other message it is the last line.
    """
    text = message.strip()
    frames = _LAST_FRAMES.match(text)
    rest = text[frames.end() :] if frames is not None else ""
    if rest:
        return rest.partition("\n")[0].lstrip(" |+")[:300]
    return (text.splitlines() or [""])[-1][:300]


class FailureFormatter(Protocol):
    """A formatter: it turns an exception into failure group and message."""

    def format(self, job: Any, error: BaseException, lines_to_remove: Iterable[str] = ()) -> tuple[str, str]:
        """Return group and message, as `job.fail` takes them.

        The message leaves out the frames `lines_to_remove`, written as by `traceback.format_stack`.
        """
        ...


class ByQueue:
    """The default formatter: the group is `<queue>-<Error>`, the message is the traceback."""

    def format(self, job: Any, error: BaseException, lines_to_remove: Iterable[str] = ()) -> tuple[str, str]:
        """Return the group and the traceback without the worker's own frames, cut to 16,000 characters."""
        return group_of(job.queue_name, name_of(error)), describe(error, lines_to_remove)


class ByKlass:
    """The formatter of older programs: the group is `<klass>:<Error>`, the message begins with the text of the error."""

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
    """Use `formatter` for failures from now on, None: the default one. Returns the one in use before.

    In a worker, call it in `--setup`; child processes inherit it. Raises UsageError for an object without `format`.
    """
    global _chosen
    if formatter is not None and not callable(getattr(formatter, "format", None)):
        raise UsageError(
            f"a failure formatter has a method format(job, error, lines_to_remove), not {formatter!r}"
        )
    before, _chosen = _chosen, _default if formatter is None else formatter
    return before


def failure_of(error: BaseException, queue: str, job: Callable[[], object]) -> tuple[str, str]:
    """Return group and message of a job of `queue` that raised `error`; `job` makes the job for a formatter."""
    if _chosen is not _default:
        try:
            group, message = _chosen.format(job(), error, ())
            return clip(check_name("group", clip(group))), cut(message)
        except Terminated:
            raise
        except BaseException as problem:
            # It is code of the user; an error in it must not hide why the job failed.
            log.error(
                "the failure formatter %s cannot be used; taking the default\n%s",
                text_of(_chosen),
                describe(problem),
            )
    return group_of(queue, name_of(error)), describe(error)


def describe(error: BaseException, lines_to_remove: Iterable[str] = ()) -> str:
    """Return the traceback of `error` without the worker's own frames, shortened for the store."""
    return cut("".join(_trace(error, lines_to_remove)))


def _trace(error: BaseException, lines_to_remove: Iterable[str]) -> list[str]:
    entries = traceback_of(error, _OURS)
    # The marks below the code of a frame may differ, so frames are compared by file and line.
    unwanted = {line.partition("\n")[0] for line in lines_to_remove}
    return [
        entry for entry in entries if not (entry.startswith(_FRAME) and entry.partition("\n")[0] in unwanted)
    ]


def _shortened(text: str) -> str:
    here = str(Path.cwd())
    places = [(sys.prefix, "<PREFIX>")] + ([(here, ".")] if len(here) > 1 else [])
    # An environment is mostly below the working directory, so the longer path is replaced first.
    for place, short in sorted(places, key=lambda pair: -len(pair[0])):
        text = text.replace(place, short)
    return text


def brief(error: BaseException) -> str:
    """Return one line about `error` for the log, whatever its text contains or raises."""
    text = " ".join(text_of(error)[: 8 * BRIEF].split())
    return check_text("error", f"{name_of(error)[:BRIEF]}: {text[:BRIEF]}")


def cut(message: str) -> str:
    """Return a failure message as the store keeps it: the beginning and the end of a long one. Raises UsageError."""
    message = check_text("message", shortened(message) if type(message) is str else message)
    return shortened(message)


def group_of(queue: str, name: str) -> str:
    """Return the failure group `<queue>-<name>`, cut to the 200 bytes of a name."""
    return clip(f"{queue}-{name}")


def clip(group: str) -> str:
    """Return the name of a group cut to 200 bytes, with `?` for each control character."""
    return _NOT_IN_NAMES.sub("?", group).encode()[:_GROUP_LIMIT].decode("utf-8", "ignore")
