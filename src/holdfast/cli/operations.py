"""`holdfast operations`: changes of many jobs: what runs and what was done; continue, stop and undo them."""

import sys
from collections.abc import Sequence
from typing import Final

import click

from holdfast.cli.bulk import DONE, print_refusals, report, what_next
from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import DefaultGroup
from holdfast.cli.output import (
    confirm,
    echo_text,
    json_option,
    print_facts,
    print_json,
    repeat,
    watch_option,
    yes_option,
)
from holdfast.cli.tables import Listing, echo_wrapped, new_line
from holdfast.console.handles import Console
from holdfast.console.operations.operations import Operation
from holdfast.console.plain import plain
from holdfast.text import brief_ago, counted, moment

_COLUMNS: Final = ("operation", "state", "action", "changed", "filter", "refused", "started", "done", "who")


@click.group(cls=DefaultGroup)
def operations() -> None:
    """Show, continue, stop and undo changes of many jobs. Without a sub-command: list."""


@examples("holdfast operations list", "holdfast operations --watch")
@operations.command("list")
@click.option(
    "--limit",
    type=click.IntRange(1, 64),
    default=25,
    show_default=True,
    metavar="N",
    help="Number of operations.",
)
@watch_option
@store_options
@json_option
def list_operations(limit: int, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """List the last operations, newest first; the store keeps a hundred.

    `state` is scheduled (not begun), running, stopped, done, failed, undone, or orphaned (its program is gone). With --json: the list
    of what `show --json` prints, without refusals.
    """
    with place.console() as console:

        def show() -> None:
            rows, now = console.operations(limit=limit), console.now_ms()
            if as_json:
                print_json([plain(row) for row in rows])
            else:
                _print(rows, now)

        repeat(watch, show)


def _print(rows: Sequence[Operation], now: int) -> None:
    if not rows and sys.stdout.isatty():
        click.echo("There are no operations. Commands with --filter start one:\n  holdfast jobs retry --help")
    listing = Listing(_COLUMNS, ("operation",), least=12, drops=_COLUMNS[4:])
    listing.add(
        [
            (
                row.id,
                state_of(row, now),
                f"{row.spec.action} {row.spec.value}".rstrip(),
                row.changed,
                row.spec.filter,
                row.refused,
                brief_ago(row.created_ms, now),
                f"{row.share:.0%}",
                row.spec.who,
            )
            for row in rows
        ]
    )


def state_of(row: Operation, now: int) -> str:
    """Return the state of an operation as people see it."""
    if row.is_planned(now):
        return "scheduled"
    return "orphaned" if row.is_orphaned else row.state


@examples("holdfast operations show ID", "holdfast operations show ID --watch")
@operations.command()
@click.argument("id", metavar="OPERATION")
@watch_option
@store_options
@json_option
def show(id: str, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """Show an operation: how far it got, the first hundred refusals, and how to continue or undo it.

    Exit code 1 if it is not known. With --json: `id`, `spec` (`action`, `filter`, `value`, `who`, `rate`, `most`, `candidates`, `undoes`),
    `state`, `is_orphaned`, `runner`, `created`, `updated`, `looked`, `matched`, `changed`, `same`, `refused`, `refusals` and `undo_until`.
    """
    with place.console() as console:
        repeat(watch, lambda: _show(console, id, as_json))


def _show(console: Console, id: str, as_json: bool) -> None:
    found, now = console.operation(id), console.now_ms()
    if as_json:
        print_json(plain(found))
        return
    spec = found.spec
    print_facts(
        {
            "operation": found.id,
            "state": state_of(found, now),
            "action": f"{spec.action} {spec.value}".rstrip(),
            "filter": spec.filter,
            "at most": counted(spec.most, "job") if spec.most else "",
            "undoes": spec.undoes,
            "who": spec.who,
            "started": moment(found.created_ms, now),
            "last change": moment(found.updated_ms, now),
            "searched": f"{found.looked:,} of {max(spec.candidates, found.looked):,} ({found.share:.0%})",
            "matched": found.matched,
            "changed": found.changed,
            "unchanged": found.same,
            "refused": found.refused,
        }
    )
    print_refusals(found.refusals, found.refused)
    for line in what_next(found, console.flags):
        echo_text(line)


@examples("holdfast operations resume ID")
@operations.command()
@click.argument("id", metavar="OPERATION")
@store_options
@json_option
def resume(id: str, place: StorePlace, as_json: bool) -> int:
    """Resume an operation that was stopped, or whose program is gone.

    Exit code 1 if it has ended or is run by another program, or if a job was refused; 130 if Ctrl-C stopped it again.
    """
    with place.console() as console:
        return report(console, console.resume_operation(id), as_json)


@examples("holdfast operations stop ID")
@operations.command()
@click.argument("id", metavar="OPERATION")
@store_options
@json_option
def stop(id: str, place: StorePlace, as_json: bool) -> int:
    """Stop an operation, whoever runs it. Jobs that it has changed are not changed back.

    Exit code 1 if it is not running. With --json: as `show`.
    """
    with place.console() as console:
        if not console.stop_operation(id):
            echo_wrapped(
                f"holdfast: operation {id} is {console.operation(id).state}, so it cannot be stopped",
                err=True,
            )
            return 1
        if as_json:
            print_json(plain(console.operation(id)))
        else:
            echo_text(
                f"{id} was stopped. To continue:{new_line(sys.stdout)}holdfast operations resume{console.flags} {id}"
            )
        return 0


@examples("holdfast operations undo ID")
@operations.command()
@click.argument("id", metavar="OPERATION")
@yes_option
@store_options
@json_option
def undo(id: str, yes: bool, place: StorePlace, as_json: bool) -> int:
    """Undo an operation within an hour: change its jobs back, unless they were changed by something else since.

    Retry, move, priority, retries, delay, tags and tracking can be undone; cancel, expire, run and edits of data cannot. Exit
    code 1 if it cannot, or if a job was refused.
    """
    with place.console() as console:
        found = console.operation(id)
        if found.undo_until_ms:
            confirm(f"Undo: {counted(found.changed, 'job')} {DONE[found.spec.action]}?", yes)
        return report(console, console.undo_operation(id), as_json)
