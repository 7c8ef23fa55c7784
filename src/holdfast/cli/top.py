"""`holdfast top`: a live view of queues, workers and failures on a terminal, with keys to act."""

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click
import msgspec

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.output import FiniteRange
from holdfast.console.handles import Console
from holdfast.console.health.attention import is_silent
from holdfast.console.operations.spec import Spec
from holdfast.console.read.overview import Overview
from holdfast.console.read.queries import queues_of
from holdfast.errors import HoldfastError, UsageError
from holdfast.text import counted, duration, one_line

PANES: Final = ("queues", "workers", "failures")
SORTS: Final = ("waiting", "running", "failed", "name")
KEYS: Final = "↑↓ select · tab pane · s sort · p pause/resume · u quiet/resume · r retry group · q quit"
_SHORT_KEYS: Final = "↑↓ tab · s sort · p pause · u quiet · r retry · q quit"
_KEY: Final = re.compile(r"\x1b[\[O].|.", re.DOTALL)
SPARED: Final = 100
"""Reading the figures takes at most a hundredth of the time, so that it costs the store at most one percent of a core."""
LONGEST_PAUSE: Final = 10.0
MOST: Final = 200
"""Queues and failure groups that can be reached."""
_SEQUENCES: Final = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\t": "tab",
    "k": "up",
    "j": "down",
}


class Row(msgspec.Struct, frozen=True):
    """A row of a pane: what it is about, and its cells."""

    name: str
    cells: tuple[str, ...]


class View(msgspec.Struct):
    """What is shown: the figures, the pane and the row that are selected, a message, and a question that waits for y or n."""

    overview: Overview | None = None
    workers: tuple[Row, ...] = ()
    pane: int = 0
    selected: int = 0
    sort: int = 0
    message: str = ""
    question: str = ""
    agreed: Callable[[], str] | None = None

    def rows(self) -> Sequence[Row]:
        """The rows of the selected pane."""
        if self.overview is None:
            return ()
        if PANES[self.pane] == "workers":
            return self.workers
        return queue_rows(self.overview, SORTS[self.sort]) if self.pane == 0 else failure_rows(self.overview)

    def name(self) -> str:
        """What the selected row is about, "" if there is none."""
        rows = self.rows()
        return rows[min(self.selected, len(rows) - 1)].name if rows else ""


def queue_rows(found: Overview, sort: str) -> list[Row]:
    """Return the rows of queues, the largest number of `sort` first."""
    if sort == "name":
        ordered = sorted(found.queues, key=lambda one: one.name)
    else:
        ordered = sorted(found.queues, key=lambda one: (-getattr(one, sort), one.name))
    rows: list[Row] = []
    for one in ordered:
        age = duration((found.now_ms - one.oldest_ms) / 1000) if one.oldest_ms else ""
        state = "paused" if one.paused else ""
        numbers = (one.waiting, one.running, one.scheduled, one.throttled, one.stalled, one.failed)
        rows.append(Row(one.name, (one.name, *(str(number) for number in numbers), age, state)))
    return rows


def failure_rows(found: Overview) -> list[Row]:
    """Return the rows of failure groups, the latest failure first."""
    return [
        Row(
            group.name,
            (
                group.name,
                str(group.count),
                str(group.trend[-1]),
                duration(max(found.now_ms - group.last_ms, 0) / 1000),
            ),
        )
        for group in found.failures
    ]


_COLUMNS: Final = {
    "queues": ("queue", "wait", "run", "sched", "thrott", "stall", "fail", "oldest", ""),
    "workers": ("worker", "host", "pool", "busy", "queues", "seen", ""),
    "failures": ("group", "jobs", "last hour", "latest"),
}
_NUMERIC: Final = {
    "wait",
    "run",
    "sched",
    "thrott",
    "stall",
    "fail",
    "oldest",
    "busy",
    "seen",
    "jobs",
    "last hour",
    "latest",
}


def pause_after(took: float, interval: float) -> float:
    """Return the seconds until the figures are read again: reads that take long are made less often."""
    return max(interval, min(took * SPARED, LONGEST_PAUSE))


class Top:
    """The live view: reads the figures, draws them, and does what keys ask for."""

    def __init__(self, console: Console, interval: float, read_only: bool) -> None:
        self._console, self._interval, self._read_only = console, interval, read_only
        self.view = View()
        self._due = 0.0

    def refresh(self) -> None:
        """Read the figures if it is time; an error is shown, and the last figures stay."""
        begun = time.monotonic()
        if begun < self._due:
            return
        try:
            self.view.overview = self._console.overview(MOST)
            self.view.workers = self._worker_rows(self.view.overview.now_ms)
        except HoldfastError as error:
            self.view.message = one_line(f"the store cannot be read: {error}")
        self._due = begun + pause_after(time.monotonic() - begun, self._interval)

    def _worker_rows(self, now_ms: int) -> tuple[Row, ...]:
        rows: list[Row] = []
        for one in self._console.workers(limit=64).rows:
            facts = one.facts
            busy = f"{facts.get('busy', '?')}/{facts.get('slots', '?')}"
            seen = duration(max(now_ms - one.seen_ms, 0) / 1000)
            cells = (
                one.name,
                facts.get("host", ""),
                facts.get("pool", ""),
                busy,
                ", ".join(queues_of(one)),
                seen,
            )
            state = "silent" if is_silent(one, now_ms) else "quiet" if one.quiet else ""
            rows.append(Row(one.name, (*cells, state)))
        return tuple(rows)

    def press(self, key: str) -> bool:
        """Do what a key asks for. Returns False to quit."""
        view = self.view
        if view.question:
            self._reply(key)
            return True
        if key in ("q", "\x03", "\x04"):
            return False
        view.message = ""
        if key in ("up", "down"):
            view.selected = max(0, min(view.selected + (1 if key == "down" else -1), len(view.rows()) - 1))
        elif key == "tab":
            view.pane, view.selected = (view.pane + 1) % len(PANES), 0
        elif key == "s":
            view.sort = (view.sort + 1) % len(SORTS)
        elif key in ("p", "u", "r"):
            self._ask(key)
        return True

    def _ask(self, key: str) -> None:
        """Ask before anything is changed."""
        view, name = self.view, self.view.name()
        wanted = {"p": "queues", "u": "workers", "r": "failures"}[key]
        if PANES[view.pane] != wanted:
            view.message = f"{key} is for {wanted}: press tab"
        elif self._read_only:
            view.message = "started with --read-only"
        elif name:
            view.question, view.agreed = getattr(self, f"_for_{wanted}")(name)

    def _for_queues(self, name: str) -> tuple[str, Callable[[], str]]:
        found = self.view.overview
        paused = found is not None and any(one.name == name and one.paused for one in found.queues)
        if paused:
            return f"Resume queue {name}?", lambda: self._did(
                self._console.resume(name), f"queue {name} is resumed"
            )
        return f"Pause queue {name}?", lambda: self._did(
            self._console.pause(name, why="holdfast top"), f"queue {name} is paused"
        )

    def _for_workers(self, name: str) -> tuple[str, Callable[[], str]]:
        quiet = any(row.name == name and row.cells[-1] == "quiet" for row in self.view.workers)
        if quiet:
            return f"Resume worker {name}?", lambda: self._did(
                self._console.resume_workers(name), f"worker {name} is resumed"
            )
        return f"Quiet worker {name}, so that it takes no more jobs?", lambda: self._did(
            self._console.quiet(name), f"worker {name} is quiet"
        )

    def _for_failures(self, name: str) -> tuple[str, Callable[[], str]]:
        return f"Retry all jobs of group {name}?", lambda: self._retry(name)

    def _retry(self, name: str) -> str:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        running = self._console.start_operation(
            Spec(action="retry", filter=f'state:failed group:"{escaped}"')
        )
        try:
            done = self._console.run_operation(running)
        except KeyboardInterrupt:
            self._console.stop_operation(running.id)
            return f"stopped; to continue: holdfast operations resume{self._console.flags} {running.id}"
        return f"{counted(done.changed, 'job')} retried, {done.refused:,} refused; holdfast operations undo{self._console.flags} {done.id}"

    def _did(self, _: object, text: str) -> str:
        return text

    def _reply(self, key: str) -> None:
        view = self.view
        agreed, view.question, view.agreed = view.agreed, "", None
        if key not in ("y", "Y") or agreed is None:
            view.message = "nothing was changed"
            return
        try:
            view.message = one_line(agreed())
        except HoldfastError as error:
            view.message = one_line(str(error))
        self._due = 0.0

    def draw(self, width: int, height: int) -> Any:
        """Return what to show on a terminal of that size."""
        from rich.console import Group
        from rich.text import Text

        parts: list[Any] = [Text(self._headline(), no_wrap=True, overflow="ellipsis")]
        if self.view.overview is None:
            return Group(*parts, Text(self.view.message or "reading …"))
        attention = self.view.overview.attention[: max(0, min(3, height // 8))]
        for one in attention:
            style = {"urgent": "bold red", "warning": "yellow", "note": "dim"}[one.severity]
            parts.append(Text(one_line(f"! {one.sentence}"), style=style, no_wrap=True, overflow="ellipsis"))
        parts.append(self._table(width, max(height - len(parts) - 6, 1)))
        foot = self.view.question + " (y/n)" if self.view.question else self.view.message
        keys = KEYS if width >= 100 else _SHORT_KEYS
        parts.append(
            Text(
                one_line(foot) if foot else keys,
                style="bold" if foot else "dim",
                no_wrap=True,
                overflow="ellipsis",
            )
        )
        return Group(*parts)

    def _headline(self) -> str:
        found = self.view.overview
        if found is None:
            return "holdfast top"
        clock = time.strftime("%H:%M:%S", time.gmtime(found.now_ms / 1000))
        totals = " · ".join(f"{found.totals[name]:,} {name}" for name in ("waiting", "running", "failed"))
        silent = f" · {found.silent:,} silent" if found.silent else ""
        return f"{clock} UTC · {totals} · {found.busy:,}/{found.slots:,} slots · {counted(found.workers, 'worker')}{silent}"

    def _table(self, width: int, room: int) -> Any:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        pane, rows = PANES[self.view.pane], self.view.rows()
        self.view.selected = max(0, min(self.view.selected, len(rows) - 1))
        first = max(0, self.view.selected - room + 1)
        sort = f", by {SORTS[self.view.sort]}" if self.view.pane == 0 else ""
        title = f"{pane} {first + 1 if rows else 0}–{min(first + room, len(rows))} of {len(rows)}{sort}"
        table = Table(
            box=box.SIMPLE_HEAD,
            title=title,
            title_justify="left",
            expand=True,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for at, name in enumerate(_COLUMNS[pane]):
            table.add_column(
                name,
                justify="right" if name in _NUMERIC else "left",
                no_wrap=True,
                overflow="ellipsis",
                ratio=1 if at == 0 else None,
                max_width=None if at == 0 else max(width // 5, 8),
            )
        for at, row in enumerate(rows[first : first + room], first):
            style = "reverse" if at == self.view.selected else ""
            table.add_row(*(Text(one_line(cell)) for cell in row.cells), style=style)
        return table


@contextmanager
def _raw_keys() -> Generator[Callable[[float], str]]:
    """Read single keys. Yields a function that waits up to a number of seconds for a key and returns it, or ""."""
    stream = sys.stdin.fileno()
    before = termios.tcgetattr(stream)
    pending: list[str] = []

    def read(seconds: float) -> str:
        if not pending:
            if not select.select([stream], [], [], max(seconds, 0))[0]:
                return ""
            text = os.read(stream, 256).decode(errors="replace")
            pending.extend(_KEY.findall(text) or "q")  # nothing to read: the terminal is gone
        key = pending.pop(0)
        return _SEQUENCES.get(key, key)

    try:
        tty.setcbreak(stream)
        yield read
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


@click.command()
@click.option(
    "--interval",
    type=FiniteRange(0.2, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two reads of the store; up to 10 if a read takes long.",
)
@click.option("--read-only", is_flag=True, help="Do not allow changes.")
@store_options
def top(interval: float, read_only: bool, place: StorePlace) -> None:
    """Show queues, workers and failures live, until q or Ctrl-C.

    The arrow keys or j and k select a row, tab changes the pane, s the order. p pauses or resumes the selected queue, u quiets or
    resumes the worker, r retries the failure group; each asks for confirmation.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("holdfast top requires a terminal; holdfast stats prints the figures once")
    if os.environ.get("TERM", "dumb").lower() in ("dumb", "unknown", ""):
        raise UsageError(
            "holdfast top does not work with TERM=dumb; holdfast stats --watch prints the figures"
        )
    with place.console() as console:
        _loop(Top(console, interval, read_only), interval)


def _loop(live: Top, interval: float) -> None:
    from rich.console import Console as Terminal
    from rich.live import Live

    terminal = Terminal()
    with _raw_keys() as read, Live(console=terminal, screen=True, auto_refresh=False) as screen:
        try:
            goes_on = True
            while goes_on:
                live.refresh()
                screen.update(live.draw(terminal.width, terminal.height), refresh=True)
                key = read(interval)
                goes_on = not key or live.press(key)
        except KeyboardInterrupt:
            return
