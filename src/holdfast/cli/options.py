"""What several commands have: options of servers, lengths of time, days, which part of a list is shown, and the list itself."""

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import click

from holdfast.cli.tables import Listing, echo_wrapped
from holdfast.code.put_options import OPTIONS, Kind
from holdfast.console.put import value_of
from holdfast.console.read.queries import Page
from holdfast.errors import UsageError
from holdfast.settings import MAX_BATCH, MAX_DELAY
from holdfast.text import counted, parse_length

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

NEGATIVE: Final = {"ignore_unknown_options": True}
"""The context settings of a command that takes a number: `-1` is then a value outside the limits, not an unknown option."""
HOST: Final = click.option(
    "-o",
    "--bind",
    "--host",
    "host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on.",
)
USERS: Final = click.option(
    "--users",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of users: lines of name:role:secret[:date[:limits]].",
)
PROXY: Final = click.option(
    "--proxy",
    multiple=True,
    metavar="ADDRESS",
    help="Address of a reverse proxy whose headers are trusted; may be repeated.",
)
PROXY_SECRET: Final = click.option(
    "--proxy-secret-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with the secret that the reverse proxy sends as X-Holdfast-Secret; required if the proxy runs on this machine.",
)
PREFIX: Final = click.option(
    "--prefix", default="", metavar="PATH", help="Path prefix of all URLs, such as /jobs."
)
HOSTS: Final = click.option(
    "--allowed-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Host name that requests may use; may be repeated [default: any].",
)


def length(text: str) -> float:
    """Return the seconds of a length of time: `90` (seconds), `30s`, `2h`, `1d12h`. Raises click.BadParameter."""
    text = text.strip().lower()
    seconds = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else parse_length(text)
    if seconds is None:
        raise click.BadParameter(f"expected a length of time such as 90s, 2h or 1d12h, got {text!r:.80}")
    if not 0 < seconds <= MAX_DELAY:
        raise click.BadParameter(f"expected more than 0 and at most 100 years, got {text!r:.80}")
    return seconds


def length_or_none(text: str) -> float:
    """Return the seconds of a length of time, which may be 0. Raises click.BadParameter."""
    return 0.0 if text.strip() in ("0", "0s") else length(text)


def day(text: str) -> int:
    """Return the first millisecond of a day of UTC: `2026-11-23`, `yesterday`, or 0 for `today`. Raises click.BadParameter."""
    text = text.strip().lower()
    if text == "today":
        return 0
    try:
        found = datetime.now(UTC) - timedelta(days=1)
        if text != "yesterday":
            found = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise click.BadParameter(
            f"expected a day such as 2026-11-23, today or yesterday, got {text!r:.80}"
        ) from None
    return round(found.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)


def end_of(text: str, now_ms: int) -> int:
    """Return when something ends, in epoch milliseconds: a length of time from now, or a day or time, in UTC unless it has an offset.

    Raises UsageError."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        seconds = parse_length(text.strip().lower())
        if seconds is None:
            raise UsageError(
                f"expected a length of time such as 2h, or a time such as '2026-11-23 08:00' (UTC), got {text!r:.80}"
            ) from None
        return now_ms + round(seconds * 1000)
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


class OptionPart(NamedTuple):
    """The part of a list that is shown: a number of rows after a cursor, or all rows."""

    limit: int
    after: str
    every: bool

    def read(self, page: Callable[[str, int], Page[T]]) -> Page[T]:
        """Return the part of a list whose pages `page` returns for a cursor and a number of rows."""
        rows: list[T] = []
        cursor = self.after
        while True:
            size = MAX_BATCH if self.every else min(self.limit - len(rows), MAX_BATCH)
            found = page(cursor, size)
            rows += found.rows
            cursor = found.next
            if not cursor or (not self.every and len(rows) >= self.limit):
                return Page(tuple(rows), cursor, found.total)


def list_options(limit: int = 100) -> Callable[[F], F]:
    """Give a command `--limit`, `--after` and `--all`, passed on together as `part`."""

    def give(command: F) -> F:
        @wraps(command)
        def parted(*args: Any, limit: int, after: str, every: bool, **others: Any) -> Any:
            return command(*args, part=OptionPart(limit, after, every), **others)

        given = click.option("--all", "every", is_flag=True, help="Show all rows.")(parted)
        given = click.option(
            "--after",
            default="",
            metavar="CURSOR",
            help="Show the rows after this cursor, which the previous output ended with.",
        )(given)
        number = click.IntRange(1, 100_000)
        option = click.option(
            "--limit", "-n", type=number, default=limit, show_default=True, help="Number of rows."
        )
        return cast("F", option(given))

    return give


def print_rest(shown: int, page: Page[Any], thing: str) -> None:
    """Print on standard error how the rows that were not shown can be seen, if there are any."""
    if page.next:
        of = f" of {page.total:,}" if page.total >= 0 else ""
        click.echo(
            f"{counted(shown, thing)}{of} shown; --after {page.next!r} shows more, --all shows all", err=True
        )


def print_list(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    whole: Collection[str] = ("jid",),
    optional: Collection[str] = (),
    *,
    empty: str = "",
    drops: Collection[str] | None = None,
    wraps: bool = False,
) -> None:
    """Print a list, each row on one line, or without rows on a terminal the sentence `empty`.

    On a terminal, columns without any text are left out, and `optional` ones with 0 only; if there is no room, those in
    `drops` (all but the first), the last one first.
    """
    if empty and not rows and sys.stdout.isatty():
        echo_wrapped(empty)
        return
    nothing = {name: ("", None, 0) if name in optional else ("", None) for name in columns}
    chosen = [
        index
        for index, name in enumerate(columns)
        if not sys.stdout.isatty() or not rows or any(row[index] not in nothing[name] for row in rows)
    ]
    names = [columns[index] for index in chosen]
    listing = Listing(names, whole, drops=names[1:] if drops is None else drops, wraps=wraps)
    listing.add([[row[index] for index in chosen] for row in rows])


_SHAPES: Final[Mapping[Kind, Mapping[str, Any]]] = {
    "switch": {"is_flag": True, "default": None},
    "whole": {"type": int},
    "seconds": {"type": float, "metavar": "SECONDS"},
    "names": {"multiple": True},
    "jids": {"multiple": True, "metavar": "JID"},
    "text": {},
    "backoff": {"metavar": "SECONDS|KIND|JSON"},
}
"""How the flag of an option of a put is given, by its kind."""


def put_flags(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds flags for options of a put. Of a list of names each is given by a flag: `--tag a --tag b`."""

    def decorate(command: F) -> F:
        for name in reversed(names):
            option = OPTIONS[name]
            word = name.removesuffix("s") if option.kind == "names" else name
            flag = f"--{word.replace('_', '-')}"
            text = f"{option.doc[:-1]}; may be repeated." if option.is_list else option.doc
            command = click.option(flag, name, help=text, **_SHAPES[option.kind])(command)
        return command

    return decorate


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `put_flags` gave as options of a put: lists that are empty are not given, a backoff is read as JSON."""
    given = {name: value for name, value in options.items() if value != ()}
    if given.get("backoff") is not None:
        given["backoff"] = value_of(given["backoff"])
    return given
