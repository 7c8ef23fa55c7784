"""Lists of any length: each row is one line, which fits the terminal; elsewhere with tabs between the cells."""

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import Final, TextIO

import click

from holdfast.text import one_line, printable

_GAP: Final = "  "
_LEAST: Final = 8
_WHOLE: Final = 40
"""Columns that are not cut have up to this width."""
_WRAPPED: Final = 30
"""A wrapped last column is printed below its row if it would be narrower than this."""
_BARS: Final = "▁▂▃▄▅▆▇█"
_TAILS: Final = ("job", "worker")
"""Columns of names that differ at their end, which is kept where they are cut."""
_NUMBER: Final = re.compile(r"([0-9.,]+( ?[a-z%]{1,3})?)?")
"""A number, also one with a unit."""


class Listing:
    """A list that is printed page by page; the columns have the widths of its first page.

    Cells that are too long end with an ellipsis; those of the columns in `whole` only beyond 40 characters, others keep
    `least`. If that is too much, of the columns that it `drops` only those stay that fit, the first of these names first, then the
    row is cut.
    Where the last column `wraps`, it has as many lines as it needs; it stands below the row if there is little room beside it.
    """

    def __init__(
        self,
        columns: Sequence[str],
        whole: Collection[str] = ("jid",),
        least: int = _LEAST,
        drops: Collection[str] = (),
        wraps: bool = False,
    ) -> None:
        self._columns = ["job" if name == "klass" else name for name in columns]
        self._least, self._wraps = least, wraps
        self._drops = [columns.index(name) for name in drops if name in columns]
        self._whole = [index for index, name in enumerate(columns) if name in whole]
        self._widths: list[int] = []
        self._right: list[bool] = []
        self._is_terminal = sys.stdout.isatty()

    def add(self, rows: Iterable[Sequence[object]], notes: Sequence[str] = ()) -> None:
        """Print rows, below the names of the columns if they are the first; below each row its note, if it has one.

        On a terminal, nothing is printed for no rows.
        """
        given = list(rows)
        if self._is_terminal and not given:
            return
        cells = [
            [self._text(cell, name) for cell, name in zip(row, self._columns, strict=True)] for row in given
        ]
        if not self._widths:
            self._measure(given, cells)
            head = list(self._columns)
            self._print(
                [*head[:-1], ""] if self._wraps and self._is_terminal and not self._widths[-1] else head
            )
        for row, note in zip_longest(cells, notes, fillvalue=""):
            self._print(list(row))
            if note:
                click.echo(f"    {one_line(note)}")

    def _text(self, value: object, column: str) -> str:
        """Return the text of a cell: on a terminal, numbers have commas, except in columns of names."""
        is_count = isinstance(value, int) and not isinstance(value, bool) and column != "pid"
        return f"{value:,}" if self._is_terminal and is_count else _text(value)

    def _measure(self, given: Sequence[Sequence[object]], cells: Sequence[Sequence[str]]) -> None:
        every = range(len(self._columns))
        self._right = [_is_number([row[index] for row in given]) for index in every]
        natural = [max(map(width, [self._columns[index], *(row[index] for row in cells)])) for index in every]
        self._widths = self._fitted(natural, shutil.get_terminal_size().columns)

    def _fitted(self, widths: list[int], room: int) -> list[int]:
        """Return column widths that fit, 0 for a column that is left out; the widest columns are narrowed first."""
        for index in self._whole if _total(widths) > room else ():
            widths[index] = min(widths[index], _WHOLE)
        if self._wraps:
            widths[-1] = max(room - _total(widths[:-1]) - len(_GAP), 0)
            widths[-1] = widths[-1] if widths[-1] >= _WRAPPED else 0
        least = [
            wide if index in self._whole or self._right[index] else min(wide, self._least)
            for index, wide in enumerate(widths)
        ]
        wanted = [(index, least[index]) for index in self._drops]
        for index, _ in wanted:
            least[index] = 0
        for index, wide in wanted:
            least[index] = wide
            if _total(least) > room:
                widths[index] = least[index] = 0
        while _total(widths) > room and any(wide > low for wide, low in zip(widths, least, strict=True)):
            spare = [index for index, wide in enumerate(widths) if wide > least[index]]
            widths[max(spare, key=lambda index: widths[index])] -= 1
        return widths

    def _print(self, row: Sequence[str]) -> None:
        if not self._is_terminal:
            click.echo("\t".join(row))
            return
        below = wrapped(row[-1], self._widths[-1] or _room() - 4) if self._wraps else []
        first = [*row[:-1], below.pop(0) if below and self._widths[-1] else ""] if self._wraps else row
        cells = [
            fitted(first[at], wide, self._right[at], self._columns[at] in _TAILS)
            for at, wide in enumerate(self._widths)
            if wide
        ]
        click.echo(cut(_GAP.join(cells).rstrip(), _room()))
        indent = _total(self._widths[:-1]) + len(_GAP) if self._widths[-1] else 4
        for line in below:
            click.echo(" " * indent + line)


def _room() -> int:
    return shutil.get_terminal_size().columns


def _is_number(cells: Sequence[object]) -> bool:
    """Return whether a column has numbers only, or lengths of time, and cells without anything."""
    return any(cell not in ("", None) for cell in cells) and all(
        cell is None or isinstance(cell, int | float) or (isinstance(cell, str) and _NUMBER.fullmatch(cell))
        for cell in cells
    )


def print_findings(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print checks: name, verdict, a sentence, and what to do; on a terminal, what to do stands below, and is not cut."""
    if not sys.stdout.isatty():
        listing = Listing(columns)
        listing.add(rows)
        return
    Listing(columns[:-1], columns[:-2], wraps=True).add([row[:-1] for row in rows], [row[-1] for row in rows])


def _total(widths: Sequence[int]) -> int:
    shown = [wide for wide in widths if wide]
    return sum(shown) + len(_GAP) * (len(shown) - 1)


def _text(value: object) -> str:
    return "" if value is None else one_line(str(value))


def width(text: str) -> int:
    """Return how many columns of a terminal a text has."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, room: int) -> str:
    """Return a text of one line that has at most `room` columns, with an ellipsis where it was cut."""
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[: max(room - 1, 0)] if len(text) >= room else text[:-1]
    return text + "…"


def fitted(text: str, room: int, right: bool = False, keeps_end: bool = False) -> str:
    """Return a text that has exactly `room` columns; of a longer one the beginning, or the end if it `keeps_end`."""
    text = cut(text[::-1], room)[::-1] if keeps_end else cut(text, room)
    blanks = " " * (room - width(text))
    return blanks + text if right else text + blanks


def cut_line(text: str, before: str = "") -> str:
    """Return printable text on one line, behind `before`, cut to the width of the terminal; elsewhere all of it."""
    line = before + one_line(text)
    return cut(line, shutil.get_terminal_size().columns) if sys.stdout.isatty() else line


def wrapped(text: str, room: int) -> list[str]:
    """Return the lines of a text that is at most `room` columns wide (20 at least), broken between words where there are any."""
    wide = width(text) - len(text)  # letters of two columns: as if all of them stood in one line
    return textwrap.wrap(text, max(room - wide, 20), break_on_hyphens=False) or [""]


def echo_wrapped(text: str, err: bool = False) -> None:
    """Print printable text; on a terminal, lines that are too long end between words, but those with a command stay whole."""
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    for line in printable(text).split("\n"):
        whole = not is_terminal or "holdfast " in line or line.startswith(" ")
        click.echo(
            line if whole else "\n".join(wrapped(line, _room())),
            err=err,
        )


def new_line(stream: TextIO) -> str:
    """Return what stands before a command: on a terminal, it has a line of its own, so that it can be copied."""
    return "\n  " if stream.isatty() else " "


def sparkline(numbers: Sequence[int]) -> str:
    """Return numbers as a row of bars, the largest one of full height; a dot for none."""
    top = max(numbers, default=0)
    return "".join(_BARS[(number * 8 - 1) // top] if number else "·" for number in numbers)
