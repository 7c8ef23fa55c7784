"""Read the tracebacks in failure messages: which frames are those of the application, and which those of libraries."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

import msgspec

_FRAME: Final = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_LIBRARY: Final = re.compile(
    r"(^|[/\\])(site-packages|dist-packages)[/\\]|[/\\]lib[/\\]python3[^/\\]*[/\\]|[/\\]holdfast[/\\](work|code|client|wire)[/\\]"
    r"|^<(frozen|string)"
)
_MOST: Final = 2000
"""Lines that are read; what is longer is shown in the raw message."""


class Frame(msgspec.Struct, frozen=True):
    """A place in code: file, line, function, and the lines of code below it."""

    file: str
    line: int
    function: str
    code: tuple[str, ...] = ()
    is_library: bool = False


class Part(msgspec.Struct, frozen=True):
    """A part of a message: lines of text, or frames that are all of libraries or all of the application.

    `kind` is text, application or library.
    """

    kind: str
    lines: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()


def parts_of(message: str) -> tuple[Part, ...]:
    """Return a message as its parts; one part of text if there is no traceback in it."""
    pieces = groupby(_pieces(message.splitlines()[:_MOST]), key=_kind)
    return tuple(_part(kind, list(some)) for kind, some in pieces)


def _kind(piece: Frame | str) -> str:
    if isinstance(piece, str):
        return "text"
    return "library" if piece.is_library else "application"


def _part(kind: str, pieces: list[Frame | str]) -> Part:
    return Part(
        kind,
        tuple(one for one in pieces if isinstance(one, str)),
        tuple(one for one in pieces if isinstance(one, Frame)),
    )


def _pieces(lines: Iterable[str]) -> Iterator[Frame | str]:
    """Yield frames, each with the lines that are indented below it, and the other lines."""
    frame: Frame | None = None
    for line in lines:
        begins = _FRAME.match(line)
        if frame is not None and (begins or not line.startswith("    ")):
            yield frame
            frame = None
        if begins:
            file = begins["file"]
            frame = Frame(
                file,
                int(begins["line"][:9]),
                begins["function"] or "",
                is_library=bool(_LIBRARY.search(file)),
            )
        elif frame is not None:
            frame = msgspec.structs.replace(frame, code=(*frame.code, line))
        else:
            yield line
    if frame is not None:
        yield frame
