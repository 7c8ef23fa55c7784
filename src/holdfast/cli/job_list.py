"""`holdfast jobs list`: find jobs by a filter."""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from shlex import quote
from typing import Any, Final

import click

from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.output import echo_text, json_option, print_json, progress, repeat, watch_option
from holdfast.cli.tables import Listing, new_line
from holdfast.commands.job_rows import JobRow
from holdfast.console.filters import parse
from holdfast.console.handles import Console
from holdfast.console.plain import plain, stored
from holdfast.console.search.search import SearchPage
from holdfast.errors import UsageError
from holdfast.printable import one_line
from holdfast.settings import MAX_BATCH
from holdfast.text import age, brief_ago, counted

FIELDS: Final = (*(name.removesuffix("_ms") for name in JobRow.__struct_fields__), "age")
_USUAL: Final = ("jid", "state", "queue", "klass", "age")
_FAILED: Final = ("jid", "queue", "klass", "group", "failed")
_TIMES: Final = {name.removesuffix("_ms"): name for name in JobRow.__struct_fields__ if name.endswith("_ms")}
_WANTS: Final = {"data": "d", "tags": "t", "group": "e", "message": "e", "failed": "e"}
_LIMIT: Final = 25


def _columns(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    for name in names:
        if name not in FIELDS:
            raise click.BadParameter(
                f"there is no column {one_line(name)!r}: expected some of {', '.join(FIELDS)}"
            )
    return names


@examples(
    "holdfast jobs list 'state:failed queue:mail-* created<2h'",
    "holdfast jobs list data.order.id=17 --all",
    "holdfast jobs list state:running --columns jid,worker,popped --watch",
)
@click.command("list")
@click.argument("words", metavar="[FILTER]", nargs=-1)
@click.option(
    "--limit", type=click.IntRange(1, MAX_BATCH), metavar="N", help=f"Show N jobs [default: {_LIMIT}]."
)
@click.option("--after", default="", metavar="CURSOR", help="Continue where an earlier list ended.")
@click.option("--all", "is_all", is_flag=True, help="Look through all jobs, and show every one that matches.")
@click.option(
    "--columns",
    callback=_columns,
    metavar="NAMES",
    help="Columns to show, with commas between: jid,state,tags.",
)
@watch_option
@store_options
@json_option
def list_jobs(
    words: Sequence[str],
    limit: int | None,
    after: str,
    is_all: bool,
    columns: tuple[str, ...],
    watch: float | None,
    place: Place,
    as_json: bool,
) -> None:
    """List the jobs that FILTER matches; without one, all.

    FILTER is described in the guide's page about the search language: 'state:failed queue:mail-* created<2h' in quotes. One call
    looks at up to 5,000 jobs; the line at the end (on standard error) states how many it looked at and how to continue.
    With --json: `jobs`, `looked`, `candidates`, `index` and `cursor` ("" at the end); times are seconds since the epoch.
    """
    if is_all and (after or watch):
        raise UsageError("--all looks through all jobs, so it goes neither with --after nor with --watch")
    text = " ".join(words)
    shown = columns or (_FAILED if parse(text).required("state") == ("failed",) else _USUAL)
    wants = "dte" if as_json else "".join(sorted({_WANTS[name] for name in shown if name in _WANTS}))
    with place.console() as console:

        def show() -> None:
            pages = (
                _all(console, text, limit, wants)
                if is_all
                else iter([console.jobs(text, after=after, limit=limit or _LIMIT, wants=wants)])
            )
            if as_json:
                _print_json(list(pages))
            else:
                _print_text(console, pages, shown, text)

        repeat(watch, show)


def _all(console: Console, text: str, limit: int | None, wants: str) -> Iterator[SearchPage]:
    """Yield pages until all jobs were looked at, or `limit` were found."""
    cursor, left = "", limit or sys.maxsize
    with progress("looking", 0, is_alone=False) as step:
        while True:
            page = console.jobs(text, after=cursor, limit=min(left, MAX_BATCH), wants=wants)
            step(page.looked, page.candidates)
            yield page
            cursor, left = page.cursor, left - len(page.jobs)
            if not cursor or not left:
                return


def _print_json(pages: Sequence[SearchPage]) -> None:
    last = pages[-1]
    print_json(
        {
            "jobs": [plain(row) for page in pages for row in page.jobs],
            "looked": sum(page.looked for page in pages),
            "candidates": max(page.candidates for page in pages),
            "index": last.index,
            "cursor": last.cursor,
        }
    )


def _print_text(console: Console, pages: Iterator[SearchPage], columns: Sequence[str], text: str) -> None:
    now = console.now_ms()
    listing = Listing(columns)
    found = looked = 0
    first = next(pages)
    last = first
    for last in chain([first], pages):
        listing.add([[cell(row, name, now) for name in columns] for row in last.jobs])
        found, looked = found + len(last.jobs), looked + last.looked
    effort = f"{counted(found, 'job')} found{' so far' if last.cursor else ''}; looked at {looked:,} of {max(first.candidates, looked):,}: {last.index}"
    echo_text(effort, err=True)
    if last.cursor:
        words = f" {quote(text)}" if text else ""
        echo_text(
            f"To continue:{new_line(sys.stderr)}holdfast jobs list{console.flags}{words} --after {quote(last.cursor)}",
            err=True,
        )


def cell(row: JobRow, name: str, now_ms: int) -> object:
    """Return what a column shows of a job."""
    if name == "age":
        return age(row.queued_ms or row.created_ms, now_ms)
    if name in _TIMES:
        return brief_ago(getattr(row, _TIMES[name]), now_ms)
    value: Any = getattr(row, name)
    if name == "data":
        return json.dumps(stored(value), ensure_ascii=False) if value else ""
    if name == "message":
        return (value.strip().splitlines() or [""])[-1]
    if name == "tags":
        return ", ".join(value)
    return ("yes" if value else "") if isinstance(value, bool) else value
