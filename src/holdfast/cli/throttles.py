"""`holdfast throttles`: show and set how many jobs of a throttle run at once."""

from collections.abc import Sequence
from typing import Any, Final

import click

from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.options import NEGATIVE, OptionPart, length, list_options, print_list, print_rest
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
from holdfast.console.handles import Console
from holdfast.console.read.queries import Throttle
from holdfast.text import brief_ago, counted, duration

ID: Final = click.argument("id", shell_complete=names_of("throttles"))
_EMPTY: Final = "No throttle has a limit. To set one:\n  holdfast throttles set ID MAXIMUM"
_SHOWN: Final = 25


@click.group(cls=OrderedGroup)
def throttles() -> None:
    """Show and set the limits of throttles.

    A throttle limits how many jobs run at the same time. ID is its name; ql:q:QUEUE is the throttle of a queue.
    """


@examples("holdfast throttles list", "holdfast throttles list --watch")
@throttles.command("list")
@list_options()
@watch_option
@store_options
@json_option
def list_throttles(part: OptionPart, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """List the throttles that have a limit.

    JSON: `throttles`, each with `id`, `queue` ("" for a named one), `maximum`, `used`, `pending` and `ttl` (seconds until the limit
    ends, or null), and `next` (for --after, "" at the end).
    """
    with place.console() as console:

        def show() -> None:
            page = part.read(lambda after, limit: console.throttles(after=after, limit=limit))
            if as_json:
                print_json({"throttles": [_plain(row) for row in page.rows], "next": page.next})
                return
            rows = [
                (one.id, one.facts.used, one.facts.maximum, one.facts.pending, _ends(one))
                for one in page.rows
            ]
            print_list(("throttle", "used", "maximum", "pending", "ends in"), rows, whole=(), empty=_EMPTY)
            print_rest(len(page.rows), page, "throttle")

        repeat(watch, show)


def _plain(one: Throttle) -> dict[str, Any]:
    facts = one.facts
    return {
        "id": one.id,
        "queue": one.queue,
        "maximum": facts.maximum,
        "used": facts.used,
        "pending": facts.pending,
        "ttl": facts.ttl,
    }


def _ends(one: Throttle) -> str:
    return "" if one.facts.ttl is None else duration(one.facts.ttl)


@examples("holdfast throttles show printer", "holdfast throttles show ql:q:mail --watch")
@throttles.command()
@ID
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, 512),
    default=_SHOWN,
    show_default=True,
    help="Number of holders and waiting jobs.",
)
@watch_option
@store_options
@json_option
def show(id: str, limit: int, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """Show one throttle: the jobs that hold its slots, and those that wait for one.

    Exit code 1 if there is no such throttle. JSON: as in list, with `holders` and `waiters`, each with `jid` and `since`.
    """
    with place.console() as console:
        repeat(watch, lambda: _show(console, id, limit, as_json))


def _show(console: Console, id: str, limit: int, as_json: bool) -> None:
    found, now = console.throttle(id, limit), console.now_ms()
    if as_json:
        print_json({**_plain(found), "holders": _since(found.holders), "waiters": _since(found.waiters)})
        return
    facts = found.facts
    print_facts(
        {
            "throttle": id,
            "maximum": facts.maximum or "no limit",
            "used": f"{facts.used:,}",
            "pending": f"{facts.pending:,}",
            "ends in": _ends(found),
        }
    )
    rows = [("holds", jid, brief_ago(round(since), now)) for jid, since in found.holders]
    rows += [("waits", jid, brief_ago(round(since), now)) for jid, since in found.waiters]
    if rows:
        click.echo()
        print_list(("", "jid", "since"), rows)
    left = facts.used + facts.pending - len(rows)
    if left > 0:
        click.echo(f"and {counted(left, 'more job')}; --limit shows more", err=True)


def _since(rows: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"jid": jid, "since": when / 1000} for jid, when in rows]


@examples("holdfast throttles set printer 2", "holdfast throttles set ql:q:mail 10 --for 1h")
@throttles.command("set", context_settings=NEGATIVE)
@ID
@click.argument("maximum", type=click.IntRange(0, 1_000_000))
@click.option(
    "--for",
    "seconds",
    type=length,
    metavar="LENGTH",
    help="Time after which the limit ends, such as 2h [default: never].",
)
@store_options
@json_option
def set_throttle(id: str, maximum: int, seconds: float | None, place: StorePlace, as_json: bool) -> None:
    """Let at most MAXIMUM jobs of a throttle run at the same time; 0: no limit.

    A higher limit lets waiting jobs run. JSON: as an element of list.
    """
    with place.console() as console:
        console.set_throttle(id, maximum, seconds or 0)
        found = console.throttle(id, 1) if as_json or seconds is None else None
    if as_json and found is not None:
        print_json(_plain(found))
        return
    ends = duration(seconds) if seconds else _ends(found) if found else ""
    echo_text(f"the limit of {id} is {maximum or 'none'}" + (f" for {ends}" if ends else ""))


@examples("holdfast throttles delete printer")
@throttles.command()
@ID
@yes_option
@store_options
@json_option
def delete(id: str, yes: bool, place: StorePlace, as_json: bool) -> None:
    """Delete the limit of a throttle, which lets waiting jobs run. Asks for confirmation.

    Exit code 1 if there is no such throttle. JSON: `id` and `deleted`.
    """
    with place.console() as console:
        found = console.throttle(id, 1)
        confirm(f"Delete the limit {found.facts.maximum} of {id}?", yes)
        deleted = console.delete_throttle(id)
    if as_json:
        print_json({"id": id, "deleted": deleted})
    else:
        echo_text(f"{id} has no limit now" if deleted else f"{id} had no limit")


@examples("holdfast throttles release printer 3f2a9c…", "holdfast throttles show printer")
@throttles.command()
@ID
@click.argument("jids", metavar="JID…", nargs=-1, required=True)
@yes_option
@store_options
@json_option
def release(id: str, jids: Sequence[str], yes: bool, place: StorePlace, as_json: bool) -> int:
    """Release slots of a throttle that jobs hold; the jobs continue to run. Asks for confirmation.

    Use it for slots that were left behind. A job that waits for a slot is removed from the queue of the throttle, and does
    not run until it is put again. Exit code 1 if none of them held a slot. JSON: `id` and `released`.
    """
    with place.console() as console:
        console.throttle(id, 1)
        confirm(f"Release the slots of {id} held by {counted(len(jids), 'job')}?", yes)
        count = console.release_throttle(id, *jids)
    if as_json:
        print_json({"id": id, "released": count})
    else:
        echo_text(f"{counted(count, 'slot')} of {id} released", err=not count)
    return 0 if count else 1
