"""`holdfast audit`: show what operators did."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import click

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import print_list
from holdfast.cli.output import echo_text, json_option, print_json
from holdfast.cli.tables import cut_line
from holdfast.commands.admin import AuditLine
from holdfast.console.filters import glob
from holdfast.console.handles import Console
from holdfast.console.read.queries import Page
from holdfast.text import moment

_EMPTY: Final = "The audit log is empty."
_PAGE: Final = 128
_PAUSE: Final = 1.0


@examples(
    "holdfast audit --limit 100",
    "holdfast audit --who 'ada@*' --json",
    "holdfast audit --follow",
)
@click.command()
@click.option(
    "--limit", "-n", type=click.IntRange(1, 10_000), default=25, show_default=True, help="Number of lines."
)
@click.option(
    "--before", default="", metavar="ID", help="Show lines before the one with this id, which --json prints."
)
@click.option(
    "--who", default="*", metavar="PATTERN", help="Show lines of these users only; * matches any text."
)
@click.option("--follow", "-f", is_flag=True, help="Print new lines as they are written, until Ctrl-C.")
@store_options
@json_option
def audit(limit: int, before: str, who: str, follow: bool, place: StorePlace, as_json: bool) -> None:
    """Show the audit log, newest line first; with --follow newest last.

    The store keeps 10,000 lines. JSON: `lines`, each with `id`, `when`, `who`, `what`, `target` and `detail`, and `next` (for
    --before, "" at the end); with --follow one line of the log on each line.
    """
    with place.console() as console:
        found = _read(console, limit, before, who)
        if follow:
            with suppress(KeyboardInterrupt):
                _follow(console, found.rows, who, as_json)
        elif as_json:
            print_json({"lines": [_plain(line) for line in found.rows], "next": found.next})
        else:
            rows = [
                (moment(line.when_ms)[:19], line.who, line.what, line.target, line.detail)
                for line in found.rows
            ]
            print_list(
                ("when (UTC)", "who", "what", "target", "detail"),
                rows,
                whole=("when (UTC)",),
                empty=_EMPTY if who == "*" else f"No lines of {who!r}.",
            )


def _read(console: Console, limit: int, before: str, who: str) -> Page[AuditLine]:
    """Return up to `limit` lines of some people."""
    matches, found = glob(who), list[AuditLine]()
    while True:
        page = console.audit(before=before, limit=_PAGE if who != "*" else min(limit - len(found), _PAGE))
        found += [line for line in page.rows if matches(line.who)]
        before = page.next
        if not before or len(found) >= limit:
            more = found[limit - 1].id if len(found) > limit else before
            return Page(tuple(found[:limit]), more)


def _follow(console: Console, shown: Sequence[AuditLine], who: str, as_json: bool) -> None:
    """Print lines, the oldest first, and then new ones as they come."""
    _print(shown, as_json)
    matches, last = glob(who), shown[0].id if shown else ""
    while True:
        some = _since(console, last)
        last = some[0].id if some else last
        _print([line for line in some if matches(line.who)], as_json)
        time.sleep(_PAUSE)


def _since(console: Console, last: str) -> list[AuditLine]:
    """Return the lines after that of an id, the newest first."""
    found: list[AuditLine] = []
    before = ""
    while True:
        page = console.audit(before=before, limit=_PAGE)
        for line in page.rows:
            if line.id == last:
                return found
            found.append(line)
        before = page.next
        if not before:
            return found


def _print(lines: Sequence[AuditLine], as_json: bool) -> None:
    for line in reversed(lines):
        if as_json:
            print_json(_plain(line))
        else:
            text = f"{moment(line.when_ms)[:19]} {line.who} {line.what} {line.target} {line.detail}"
            echo_text(cut_line(text))
    sys.stdout.flush()


def _plain(line: AuditLine) -> dict[str, Any]:
    return {
        "id": line.id,
        "when": line.when_ms / 1000,
        "who": line.who,
        "what": line.what,
        "target": line.target,
        "detail": line.detail,
    }
