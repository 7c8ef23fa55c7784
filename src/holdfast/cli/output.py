"""How commands print: text and tables for people, JSON for programs, progress bars."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from holdfast.cli.tables import wrapped
from holdfast.errors import HoldfastError, UsageError
from holdfast.text import one_line, printable, printable_json

F = TypeVar("F", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A number within limits; NaN is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{value!r} is not a number.", param, ctx)
        return found


def json_option(command: F) -> F:
    """Give a command `--json`, passed on as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def watch_option(command: F) -> F:
    """Give a command `--watch [SECONDS]`, passed on as `watch`: None, or the time between two looks."""
    return click.option(
        "--watch",
        type=FiniteRange(0.1, 3600),
        is_flag=False,
        flag_value=2.0,
        metavar="[SECONDS]",
        help="Print it again every SECONDS (2), until Ctrl-C.",
    )(command)


def repeat(watch: float | None, show: Callable[[], None]) -> None:
    """Show something once, or with `watch` again and again until Ctrl-C: in place on a terminal, line after line elsewhere."""
    if watch is None:
        show()
        return
    with suppress(KeyboardInterrupt):
        while True:
            if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
                click.clear()
            show()
            sys.stdout.flush()
            time.sleep(watch)


def yes_option(command: F) -> F:
    """Give a command `--yes`, passed on as `yes`: it does not ask."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal whether to do it. Raises HoldfastError if the user declines, UsageError without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Give --yes: there is no terminal to ask on")
    if not click.confirm(printable(question)):
        raise HoldfastError("nothing was changed")


def print_json(value: object) -> None:
    """Print one JSON document and a newline."""
    click.echo(printable_json(json.dumps(value, ensure_ascii=False, default=_plain)))


def echo_text(text: str, err: bool = False) -> None:
    """Print text that others may have written, without control characters; on standard error if `err`."""
    click.echo(printable(text), err=err)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and values in two columns; empty values are left out."""
    is_terminal = sys.stdout.isatty()
    shown = {
        name: f"{value:,}" if is_terminal and type(value) is int and name != "pid" else _text(value)
        for name, value in facts.items()
        if value not in ("", None)
    }
    width = max(map(len, shown), default=0)
    room = shutil.get_terminal_size().columns - width - 2 if is_terminal else sys.maxsize
    for name, value in shown.items():
        first, *others = wrapped(value, room)
        click.echo(f"{name:<{width}}  {first}")
        for line in others:
            click.echo(" " * (width + 2) + line)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: drawn on a terminal, with tabs between the cells elsewhere. Numbers are aligned to the right."""
    if not sys.stdout.isatty():
        for row in [columns, *rows]:
            click.echo("\t".join(map(_text, row)))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for index, name in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        table.add_column(name, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(_text(cell)) for cell in row))  # as text: names may look like markup
    Console().print(table)


class Advance(Protocol):
    """Advances a bar by a number of steps; a new total may be given."""

    def __call__(self, steps: int, total: int | None = None) -> None: ...


def _show_nothing(steps: int, total: int | None = None) -> None:
    """Advance no bar."""


@contextmanager
def progress(what: str, total: int, *, is_alone: bool = True) -> Generator[Advance, None, None]:
    """Show a bar on a terminal, nothing elsewhere; none where output goes to the same terminal meanwhile (not `is_alone`).

    Yields a function that advances it by a number of steps of `total`, or of the total that it is given.
    """
    if not sys.stderr.isatty() or (sys.stdout.isatty() and not is_alone):
        yield _show_nothing
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def advance(steps: int, total: int | None = None) -> None:
            bar.update(task, advance=steps, total=total)

        yield advance


def _text(value: object) -> str:
    return "" if value is None else one_line(str(value))


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
