"""Lists of any length: each row is one line, which fits the terminal; elsewhere with tabs between the cells."""

import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import click

from holdfast.printable import one_line

_GAP: Final = "  "
_LEAST: Final = 8
_WHOLE: Final = 40
"""Columns that are not cut have up to this width."""
_BARS: Final = "▁▂▃▄▅▆▇█"


class Listing:
    """A list that is printed page by page; the columns have the widths of its first page.

    Cells that are too long end with an ellipsis; those of the columns in `whole` only beyond 40 characters, others keep
    `least`. If that is too much, the last columns are left out where it `drops` them, else cut.
    """

    def __init__(
        self,
        columns: Sequence[str],
        whole: Collection[str] = ("jid",),
        least: int = _LEAST,
        drops: bool = False,
    ) -> None:
        self._columns, self._least, self._drops = columns, least, drops
        self._whole = [index for index, name in enumerate(columns) if name in whole]
        self._widths: list[int] = []
        self._right: list[bool] = []
        self._is_terminal = sys.stdout.isatty()

    def add(self, rows: Iterable[Sequence[object]]) -> None:
        """Print rows, below the names of the columns if they are the first."""
        given = list(rows)
        cells = [[_text(cell) for cell in row] for row in given]
        if not self._widths:
            self._measure(given, cells)
            self._print(list(self._columns))
        for row in cells:
            self._print(row)

    def _measure(self, given: Sequence[Sequence[object]], cells: Sequence[Sequence[str]]) -> None:
        every = range(len(self._columns))
        self._right = [
            bool(given) and all(isinstance(row[index], int | float) for row in given) for index in every
        ]
        natural = [max(map(width, [self._columns[index], *(row[index] for row in cells)])) for index in every]
        self._widths = self._fitted(natural, shutil.get_terminal_size().columns)

    def _fitted(self, widths: list[int], room: int) -> list[int]:
        """Return widths that fit; the widest columns give first."""
        for index in self._whole:
            widths[index] = min(widths[index], _WHOLE)
        least = [
            wide if index in self._whole else min(wide, self._least) for index, wide in enumerate(widths)
        ]
        while self._drops and len(widths) > 1 and _total(least[: len(widths)]) > room:
            widths.pop()
        while _total(widths) > room and any(wide > low for wide, low in zip(widths, least, strict=False)):
            spare = [index for index, wide in enumerate(widths) if wide > least[index]]
            widths[max(spare, key=lambda index: widths[index])] -= 1
        return widths

    def _print(self, row: Sequence[str]) -> None:
        if not self._is_terminal:
            click.echo("\t".join(row))
            return
        cells = [fitted(row[at], wide, self._right[at]) for at, wide in enumerate(self._widths)]
        click.echo(cut(_GAP.join(cells).rstrip(), shutil.get_terminal_size().columns))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


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


def fitted(text: str, room: int, right: bool = False) -> str:
    """Return a text that has exactly `room` columns."""
    text = cut(text, room)
    blanks = " " * (room - width(text))
    return blanks + text if right else text + blanks


def cut_line(text: str, before: str = "") -> str:
    """Return printable text on one line, behind `before`, cut to the width of the terminal; elsewhere all of it."""
    line = before + one_line(text)
    return cut(line, shutil.get_terminal_size().columns) if sys.stdout.isatty() else line


def sparkline(numbers: Sequence[int]) -> str:
    """Return numbers as a row of bars, the largest one of full height; a dot for none."""
    top = max(numbers, default=0)
    return "".join(_BARS[(number * 8 - 1) // top] if number else "·" for number in numbers)
