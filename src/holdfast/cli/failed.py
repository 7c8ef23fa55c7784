"""`holdfast failed`: failed jobs by group, what they have in common, and putting them back to work."""

import sys
from collections.abc import Sequence
from typing import Final

import click

from holdfast.cli.bulk import quoted, report_each, run_bulk
from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import DefaultGroup
from holdfast.cli.job_show import cut_line_indented
from holdfast.cli.options import length
from holdfast.cli.output import (
    FiniteRange,
    confirm,
    echo_text,
    json_option,
    print_json,
    repeat,
    watch_option,
    yes_option,
)
from holdfast.cli.tables import Listing, cut_line, sparkline
from holdfast.client.reasons import argument
from holdfast.code.failure import error_line
from holdfast.commands.failures import FailureGroup
from holdfast.console.handles import Console
from holdfast.console.health.snooze import GROUP
from holdfast.console.operations.spec import Spec
from holdfast.console.plain import plain
from holdfast.console.read.job_queries import FailureDetail
from holdfast.errors import Refused, UsageError
from holdfast.text import brief_ago, counted, duration, moment

_LIMIT: Final = 25
_TREND: Final = 24
"""How many hours are drawn."""
_LINES: Final = 30
_COLUMNS: Final = ("group", "count", "hour", "last", "trend", "queues", "first")


@examples(
    "holdfast failed",
    "holdfast failed show mail-ValueError",
    "holdfast failed retry mail-ValueError --probe --rate 50",
)
@click.group(cls=DefaultGroup)
def failed() -> None:
    """Show failed jobs by group, and retry or cancel them. Without a sub-command: list."""


@examples("holdfast failed list 'mail-*'", "holdfast failed --watch 5")
@failed.command("list")
@click.argument("pattern", metavar="[PATTERN]", default="*", shell_complete=names_of("groups"))
@click.option("--limit", type=click.IntRange(1, 10_000), default=_LIMIT, show_default=True, metavar="N",
              help="Number of groups.")  # fmt: skip
@watch_option
@store_options
@json_option
def list_groups(pattern: str, limit: int, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """List failure groups whose name matches PATTERN, latest failure first.

    `hour` counts the failures of the current hour. On a terminal the last column draws those of the last 24 hours. With
    --json: `groups`, each with `name`, `count`, `first`, `last`, `newest` (a jid), `queues`, `trend` (failures in each of the
    last 48 hours), and `more`, the number of groups that are not shown.
    """
    with place.console() as console:

        def show() -> None:
            groups = console.failures(pattern)
            shown = groups[:limit]
            queues = console.failed_queues(*[group.name for group in shown])
            if as_json:
                rows = [{**plain(group), "queues": list(queues[group.name])} for group in shown]
                print_json({"groups": rows, "more": len(groups) - len(shown)})
            else:
                _print_groups(shown, queues, console.now_ms())
                _print_sum(groups, len(shown))

        repeat(watch, show)


def _columns() -> tuple[str, ...]:
    return _COLUMNS if sys.stdout.isatty() else tuple(name for name in _COLUMNS if name != "trend")


def _print_groups(groups: Sequence[FailureGroup], queues: dict[str, tuple[str, ...]], now: int) -> None:
    listing = Listing(_columns(), ("group", "trend"), drops=("trend", "queues", "first"))
    listing.add(
        [
            (
                group.name,
                group.count,
                group.trend[-1],
                brief_ago(group.last_ms, now),
                *((sparkline(group.trend[-_TREND:]),) if sys.stdout.isatty() else ()),
                ", ".join(queues[group.name]),
                brief_ago(group.first_ms, now),
            )
            for group in groups
        ]
    )


def _print_sum(groups: Sequence[FailureGroup], shown: int) -> None:
    total = counted(sum(group.count for group in groups), "failed job")
    more = f"; --limit {len(groups)} shows all" if len(groups) > shown else ""
    echo_text(f"{total} in {counted(len(groups), 'group')}{more}", err=True)


@examples("holdfast failed show mail-ValueError")
@failed.command()
@click.argument("group", shell_complete=names_of("groups"))
@click.option("--full", is_flag=True, help="Show all of the traceback.")
@store_options
@json_option
def show(group: str, full: bool, place: StorePlace, as_json: bool) -> None:
    """Show a failure group: its messages, what its newest 200 jobs have in common, its newest jobs, and one traceback.

    Exit code 2 if there is no such group. With --json: `group`, `messages`, `shares`, `newest`.
    """
    with place.console() as console:
        found = console.failure(group)
        now, flags = console.now_ms(), console.flags
    if as_json:
        print_json(plain(found))
        return
    _print_group(found, now, full)
    echo_text(
        f"\nTo retry one of them first, then the others:\n  holdfast failed retry{flags} {argument(group)} --probe"
    )


def _print_group(found: FailureDetail, now: int, full: bool) -> None:
    group = found.group
    echo_text(
        cut_line(f"{group.name}: {counted(group.count, 'failed job')}, {group.trend[-1]:,} in this hour")
    )
    echo_text(f"first {moment(group.first_ms, now)}")
    echo_text(f"last  {moment(group.last_ms, now)}")
    click.echo("\nmessages")
    for text, count in found.messages:
        echo_text(cut_line(text, f"{count:>7,}  "))
    if found.shares:
        click.echo("\nin common")
        for one in found.shares:
            what = "job" if one.what == "klass" else one.what
            echo_text(cut_line(f"{one.count:,} of {one.of:,} have {what} {one.value}", "  "))
    click.echo("\nnewest")
    listing = Listing(("jid", "queue", "failed", "message"))
    listing.add(
        [(row.jid, row.queue, brief_ago(row.failed_ms, now), error_line(row.message)) for row in found.newest]
    )
    if found.newest:
        click.echo("\ntraceback of the newest")
        lines = found.newest[0].message.rstrip().splitlines()
        for line in lines if full else lines[-_LINES:]:
            echo_text(f"  {line}" if full else cut_line_indented(line))


@examples(
    "holdfast failed retry mail-ValueError --probe",
    "holdfast failed retry mail-ValueError --count 10",
    "holdfast failed retry --all --rate 100 --yes",
)
@failed.command()
@click.argument("group", required=False, shell_complete=names_of("groups"))
@click.option("--all", "is_all", is_flag=True, help="Retry the jobs of all groups.")
@click.option("--count", type=click.IntRange(1, 10_000), metavar="N", help="Retry only the N newest.")
@click.option(
    "--rate",
    type=FiniteRange(0.0, 1_000_000, min_open=True),
    metavar="N",
    help="Change at most N jobs a second.",
)
@click.option(
    "--probe", is_flag=True, help="Retry one job, wait for its end, and ask whether to retry the others."
)
@click.option("--timeout", type=FiniteRange(0.1, 86_400), default=60.0, show_default=True, metavar="SECONDS",
              help="With --probe: how long to wait for that job.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@yes_option
@store_options
@json_option
def retry(
    group: str | None,
    is_all: bool,
    count: int | None,
    rate: float | None,
    probe: bool,
    timeout: float,
    dry_run: bool,
    yes: bool,
    place: StorePlace,
    as_json: bool,
) -> int:
    """Put the jobs of a failure group back into their queues, with all their retries.

    With --probe and --yes, the others (with --count: N of them) are retried if that job has completed. Exit code 1 if it
    failed or did not end, or if a job was refused.
    """
    filter = _filter(group, is_all)
    with place.console() as console:
        if probe and not dry_run and not _probe(console, filter, timeout, yes):
            return 1
        if count and not rate and not dry_run:
            return _retry_newest(console, _newest(console, filter, count), probe and not yes, as_json)
        spec = Spec(action="retry", filter=filter, rate=rate or 0.0, most=count or 0)
        return run_bulk(console, spec, yes=yes, dry_run=dry_run, as_json=as_json)


def _filter(group: str | None, is_all: bool) -> str:
    if is_all == (group is not None):
        raise UsageError("name a GROUP, or give --all" + (", not both" if is_all else ""))
    return f"state:failed group:{quoted(group)}" if group is not None else "state:failed"


def _retry_newest(console: Console, jids: Sequence[str], asks: bool, as_json: bool) -> int:
    """Retry these jobs, and return the exit code."""
    if not jids:
        raise UsageError("there are no failed jobs to retry")
    confirm(f"Retry {counted(len(jids), 'job')}?", yes=not asks)
    return report_each("retry", console.act("retry", *jids), as_json)


def _newest(console: Console, filter: str, count: int) -> list[str]:
    """Return the jids of the newest failed jobs that a filter matches."""
    cursor, found = "", list[str]()
    while True:
        page = console.jobs(filter, after=cursor, limit=min(count - len(found), 512))
        found += [row.jid for row in page.jobs]
        cursor = page.cursor
        if not cursor or len(found) >= count:
            return found


def _probe(console: Console, filter: str, timeout: float, yes: bool) -> bool:
    """Retry one job and wait for its end. Returns whether to retry the others."""
    jids = _newest(console, filter, 1)
    if not jids:
        raise UsageError("there are no failed jobs to retry")
    [(jid, changed)] = console.act("retry", *jids)
    if isinstance(changed, Refused):
        raise changed
    echo_text(f"{jid} retried; waiting up to {duration(timeout)} for its end", err=True)
    outcome = console.wait_for(jid, timeout)
    if outcome.status == "done":
        echo_text(f"{jid} has completed", err=True)
        return True
    if outcome.status == "open":
        why = f"holdfast jobs why{console.flags} {jid}"
        echo_text(f"{jid} has not ended within {duration(timeout)}; `{why}` shows why", err=True)
    else:
        echo_text(f"{jid} did not complete: {error_line(str(outcome.error or 'it is gone'))}", err=True)
    return not yes and sys.stdin.isatty() and click.confirm("Retry the others anyway?", default=False)


@examples("holdfast failed cancel mail-ValueError --dry-run")
@failed.command()
@click.argument("group", shell_complete=names_of("groups"))
@click.option(
    "--rate",
    type=FiniteRange(0.0, 1_000_000, min_open=True),
    metavar="N",
    help="Change at most N jobs a second.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@yes_option
@store_options
@json_option
def cancel(group: str, rate: float | None, dry_run: bool, yes: bool, place: StorePlace, as_json: bool) -> int:
    """Delete the failed jobs of a group. This cannot be undone; `holdfast jobs export group:GROUP` keeps a copy first.

    Exit code 1 if a job was refused.
    """
    spec = Spec(action="cancel", filter=_filter(group, False), rate=rate or 0.0)
    with place.console() as console:
        return run_bulk(console, spec, yes=yes, dry_run=dry_run, as_json=as_json)


@examples("holdfast failed mute mail-ValueError", "holdfast failed mute mail-ValueError --for 2h")
@failed.command()
@click.argument("group", shell_complete=names_of("groups"))
@click.option(
    "--for", "seconds", type=length, metavar="LENGTH", help="Duration, such as 2h [default: until it grows]."
)
@store_options
@json_option
def mute(group: str, seconds: float | None, place: StorePlace, as_json: bool) -> None:
    """Leave a failure group out of the findings until it grows, for all users.

    It is shown again when it has half again as many jobs, at least ten more. JSON: the `group`, and `until`, null for no end.
    """
    with place.console() as console:
        made = console.snooze(GROUP, group, seconds=seconds or 0)
    if as_json:
        print_json({"group": group, "until": made.until_ms / 1000 if made.until_ms else None})
    else:
        until = f"for {duration(seconds)}" if seconds else "until it grows"
        echo_text(f"{group} is muted {until}")


@examples("holdfast failed unmute mail-ValueError")
@failed.command()
@click.argument("group", shell_complete=names_of("groups"))
@store_options
@json_option
def unmute(group: str, place: StorePlace, as_json: bool) -> None:
    """Show a failure group among the findings again. JSON: the `group`, and whether it was `muted`."""
    with place.console() as console:
        was_muted = console.unsnooze(GROUP, group)
    if as_json:
        print_json({"group": group, "muted": was_muted})
    else:
        echo_text(f"{group} is unmuted" if was_muted else f"{group} was not muted")
