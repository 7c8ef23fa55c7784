"""`holdfast recurring`: show, add, run, pause, edit and delete recurring jobs."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, time, timedelta, tzinfo
from itertools import islice
from typing import Any, Final, cast

import click

from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.options import (
    OptionPart,
    end_of,
    given_options,
    length,
    length_or_none,
    list_options,
    print_list,
    print_rest,
    put_flags,
)
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
from holdfast.cli.tables import cut_line
from holdfast.client.recur_options import Changes
from holdfast.code.calendar import Calendar, zone_of
from holdfast.code.put_options import OPTIONS
from holdfast.commands.job_rows import JobRow
from holdfast.commands.recurring import RecurGet, RecurringFacts
from holdfast.console.handles import Console
from holdfast.console.plain import plain, stored
from holdfast.console.put import NamedCode
from holdfast.errors import HoldfastError, JobNotFound, UsageError
from holdfast.settings import DEFAULT_BACKLOG, MAX_BATCH, check_name
from holdfast.text import ago, brief_ago, counted, duration, moment

_EMPTY = (
    "There are no recurring jobs. To add one:\n  holdfast recurring add CODE --queue QUEUE --every LENGTH"
)
JIDS = click.argument("jids", metavar="JID…", nargs=-1, required=True, shell_complete=names_of("recurring"))
JID = click.argument("jid", shell_complete=names_of("recurring"))


@click.group(cls=OrderedGroup)
def recurring() -> None:
    """Show, add, run, pause, edit and delete recurring jobs."""


@examples("holdfast recurring list", "holdfast recurring list 'mail-*' --watch 10")
@recurring.command("list")
@click.argument("pattern", metavar="[QUEUE]", default="*", shell_complete=names_of("queues"))
@list_options()
@watch_option
@store_options
@json_option
def list_recurring(
    pattern: str, part: OptionPart, watch: float | None, place: StorePlace, as_json: bool
) -> None:
    """List recurring jobs by queue, next due first.

    * in QUEUE matches any text. `put` is the number of jobs put so far, `last` the state of the last one, `left out` how many occurrences got no job, and
    `declared` the module that declares it. JSON: `recurring`, `next` (for --after, "" at the end) and
    `total`.
    """
    with place.console() as console:

        def show() -> None:
            now = console.now_ms()
            page = part.read(lambda after, limit: console.recurring(pattern, after=after, limit=limit))
            if as_json:
                rows = [plain(row) for row in page.rows]
                print_json({"recurring": rows, "next": page.next, "total": page.total})
                return
            columns = (
                "jid",
                "queue",
                "klass",
                "every",
                "next",
                "put",
                "paused",
                "last",
                "left out",
                "declared",
            )
            last = console.last_jobs(*page.rows, most=1)
            print_list(
                columns,
                [_cells(row, now, last[row.jid]) for row in page.rows],
                empty=f"No recurring job of a queue {pattern!r}." if pattern != "*" else _EMPTY,
            )
            print_rest(len(page.rows), page, "recurring job")

        repeat(watch, show)


def _cells(row: RecurringFacts, now: int, last: Sequence[JobRow]) -> Sequence[object]:
    due = "" if row.paused else brief_ago(row.next_ms, now) if row.next_ms else "never"
    paused = _pause(row, now) if row.paused else ""
    own = row.declared
    declared = "" if own is None else f"{own.module} (no more)" if own.vanished_ms else own.module
    state = last[0].state if last else ""
    return (
        row.jid,
        row.queue,
        row.klass,
        _every(row),
        due,
        row.count,
        paused,
        state,
        row.left_out or "",
        declared,
    )


def _every(row: RecurringFacts) -> str:
    """Return the interval of a recurring job, or its cron expression with its zone."""
    own = row.calendar
    return duration(row.interval_ms / 1000) if own is None else f"{own.cron} {own.zone}"


def _pause(row: RecurringFacts, now: int) -> str:
    """Return who paused a recurring job, why, since when and until when, and what it has missed."""
    why = f": {row.paused_why}" if row.paused_why else ""
    since = f", since {moment(row.paused_since_ms)}" if row.paused_since_ms else ""
    until = f", resumes {ago(row.paused_until_ms, now)}" if row.paused_until_ms else ""
    missed = row.missed_by(now)
    return f"by {row.paused_by or 'an unnamed user'}{why}{since}{until}" + (
        f"; {counted(missed, 'run')} missed" if missed else ""
    )


def _declared(found: RecurringFacts) -> str:
    """Return by which module code declares a recurring job, or since when it does not."""
    own = found.declared
    if own is None:
        return ""
    where = f"in {own.module}" + (f", version {own.version}" if own.version else "")
    if not own.vanished_ms:
        return f"{where}, put by worker {own.by} at {moment(own.declared_ms)}"
    return f"{where}, until {moment(own.vanished_ms)}; `holdfast recurring prune` deletes it"


def _outcome(last: JobRow, now: int) -> str:
    """Return the state of the last job of a recurring job, and when it ended."""
    state = "which is kept no more" if last.state == "gone" else last.state
    return f"{state} {ago(last.ended_ms, now)}" if last.ended_ms else state


def _missed(found: RecurringFacts, now: int) -> str:
    """Return how many turns were missed without a pause, and what becomes of them."""
    missed = 0 if found.paused else found.missed_by(now)
    if not missed:
        return ""
    put = f"up to {found.backlog:,} of their jobs are put" if found.backlog else "their jobs are put"
    return f"{counted(missed, 'run')}: no worker has polled queue {found.queue} since the first of them; {put} when one does"


@examples("holdfast recurring show nightly-report")
@recurring.command()
@JID
@store_options
@json_option
def show(jid: str, place: StorePlace, as_json: bool) -> None:
    """Show one recurring job. Exit code 1 if it does not exist."""
    with place.console() as console:
        found, now = console.recurring_job(jid), console.now_ms()
        last = () if as_json else console.last_jobs(found, most=1)[jid]
    if as_json:
        print_json(plain(found))
        return
    facts: dict[str, object] = {
        "jid": found.jid,
        "queue": found.queue,
        "job": found.klass,
        "every": _every(found),
        "next": moment(found.next_ms, now)
        if found.next_ms
        else "never: no moment of its calendar is planned",
        "paused": _pause(found, now) if found.paused else "",
        "missed": _missed(found, now),
        "put": f"{counted(found.count, 'job')}"
        + (f", the last one is {jid}-{found.count}, {_outcome(last[0], now)}" if last else ""),
        **_backlog(found),
        "priority": found.priority,
        "retries": found.retries,
        "tags": ", ".join(found.tags),
        "throttles": ", ".join(found.throttles),
        "declared": _declared(found),
        "since": moment(found.since_ms),
    }
    print_facts(facts)
    echo_text(cut_line(f"data {json.dumps(stored(found.data), ensure_ascii=False)}"))


_missed_option = click.option(
    "--missed",
    metavar="WHICH",
    help="Which moments of a cron expression that were missed get a job: once (the last one), skip, all, or how many [default: once].",
)
_overlap_option = click.option(
    "--overlap",
    type=click.Choice(["allow", "skip", "queue"]),
    help="What happens while the last job has not ended: allow another one, skip it, or queue one behind it [default: allow].",
)


@examples(
    "holdfast recurring add reports.nightly --queue reports --every 1d --first 2h --jid nightly-report",
    "holdfast recurring add reports.nightly --queue reports --cron '0 3 * * *' --zone Europe/Berlin --jid nightly-report",
    """holdfast recurring add Report --klass --queue reports --every 1h --data '{"format": "pdf"}'""",
)
@recurring.command()
@click.argument("code")
@click.option("--queue", "-q", required=True, shell_complete=names_of("queues"), help="Queue of its jobs.")
@click.option(
    "--every",
    "interval",
    type=length,
    metavar="LENGTH",
    help="Time between two jobs, such as 10m; or give --cron.",
)
@click.option(
    "--cron", metavar="EXPRESSION", help="Cron expression of five fields, or a name such as @daily."
)
@click.option(
    "--at", metavar="HH:MM", help="Time of day in --zone, with --every of whole days or weeks, such as 1d."
)
@click.option(
    "--zone", metavar="ZONE", help="Time zone of --cron and --at, such as Europe/Berlin [default: UTC]."
)
@_missed_option
@_overlap_option
@click.option(
    "--jitter",
    type=length,
    metavar="LENGTH",
    help="Time by which a job of --cron may be put later [default: 0s].",
)
@click.option(
    "--start",
    metavar="TIME",
    help="First time that --cron may name: a length of time from now, or a time in UTC [default: now].",
)
@click.option(
    "--end", metavar="TIME", help="Last time that --cron may name, in the same form [default: none]."
)
@click.option(
    "--first",
    "offset",
    type=length,
    metavar="LENGTH",
    help="Time until the first job [default: now].",
)
@click.option("--klass", "is_class", is_flag=True, help="CODE is a class or module, not a function.")
@click.option("--jid", help="Jid of the recurring job [default: generated].")
@click.option("--data", metavar="JSON", help="Data of a class, or the arguments of a function.")
@click.option(
    "--backlog",
    type=int,
    help=f"Number of missed jobs of --every that are put later; 0: all [default: {DEFAULT_BACKLOG}].",
)
@put_flags(*(name for name, option in OPTIONS.items() if option.recurring and name != "jid"))
@store_options
@json_option
def add(
    code: str,
    queue: str,
    interval: float | None,
    is_class: bool,
    data: str | None,
    place: StorePlace,
    as_json: bool,
    **given: Any,
) -> None:
    """Add a recurring job, which puts a job at a fixed interval or at the moments of a calendar, and print its jid.

    CODE is the name of the function (`package.module.function`), or with --klass of a class. An existing --jid is refused:
    use `edit` to change it. JSON: `jid`.
    """
    jid = given["jid"]
    if (interval is None) == (given["cron"] is None):
        raise UsageError("give one of --every and --cron")
    if given["at"] is not None:
        given["at"] = _time_of(given["at"])
    elif interval is not None and given["backlog"] is None:
        given["backlog"] = DEFAULT_BACKLOG
    if given["missed"] is not None and given["missed"].isdigit():
        given["missed"] = int(given["missed"])
    with place.client() as client:
        now = round(client.store_time() * 1000)
        for name in ("start", "end"):
            if given[name] is not None:
                given[name] = end_of(given[name], now) / 1000
        if jid and client.run(RecurGet((check_name("jid", jid),)))[0] is not None:
            raise UsageError(
                f"there is a recurring job {jid!r:.200} already: `holdfast recurring edit` changes it"
            )
        named = NamedCode(code, is_class, client.settings.max_data)
        options = named.options(given_options(given))
        made = Console(client).add_recurring(queue, code, named.data(data), interval, options)
    if as_json:
        print_json({"jid": made})
    else:
        echo_text(made)


def _time_of(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--at: expected a time of day such as 03:30, got {text!r:.80}") from None


def _backlog(found: RecurringFacts) -> dict[str, object]:
    """Return what becomes of missed moments, and what else a calendar has."""
    own = found.calendar
    facts: dict[str, object] = {"backlog": found.backlog or "all missed jobs are put"}
    if own is not None:
        facts = {"if missed": own.missed, "jitter": duration(own.jitter_ms / 1000) if own.jitter_ms else ""}
    return {
        **facts,
        "overlap": found.overlap if own or found.overlap != "allow" else "",
        "unique key": found.unique_key,
        "unique for": found.unique_for,
        "without a job": counted(found.left_out, "occurrence") if found.left_out else "",
    }


@examples("holdfast recurring next nightly-report --count 20")
@recurring.command("next")
@JID
@click.option(
    "--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many moments."
)
@store_options
@json_option
def next_moments(jid: str, count: int, place: StorePlace, as_json: bool) -> None:
    """Show the next moments of a recurring job in its time zone, where the clock is changed between them, and with a jitter when each job is put.

    JSON: epoch seconds. Exit code 1 if it does not exist.
    """
    with place.console() as console:
        found, now = console.recurring_job(jid), console.now_ms() / 1000
    moments = _moments(found, now, count)
    if as_json:
        print_json(moments)
        return
    zone = zone_of("UTC" if found.calendar is None else found.calendar.zone)
    before: timedelta | None = None
    for one in moments:
        local = datetime.fromtimestamp(one, zone)
        offset = local.utcoffset()
        changed = "  the clock was changed" if before is not None and offset != before else ""
        echo_text(f"{local:%a %Y-%m-%d %H:%M:%S %z}{_put_at(found, one, zone)}{changed}")
        before = offset


def _put_at(found: RecurringFacts, nominal: float, zone: tzinfo) -> str:
    """Return when the job of a moment is put, if there is a jitter."""
    own = found.calendar
    if own is None or not own.jitter_ms:
        return ""
    due = (
        nominal
        + Calendar(own.cron, jitter=own.jitter_ms / 1000).late_by(found.jid, round(nominal * 1000)) / 1000
    )
    return f"  put at {datetime.fromtimestamp(due, zone):%H:%M:%S}"


def _moments(found: RecurringFacts, now: float, count: int) -> list[float]:
    own, next_one = found.calendar, found.next_ms / 1000
    if own is None:
        step = found.interval_ms / 1000
        return [next_one + number * step for number in range(count)]
    calendar = Calendar(own.cron, own.zone, 0.0, own.start_ms / 1000, own.end_ms / 1000)
    return list(islice(calendar.moments(now), count))


@examples("holdfast recurring run nightly-report")
@recurring.command()
@JIDS
@store_options
@json_option
def run(jids: Sequence[str], place: StorePlace, as_json: bool) -> int:
    """Put a job of each recurring job now, in addition to its schedule, and print its jid.

    This works for paused ones too. Exit code 1 if one of them does not exist. JSON: for each the jid of the new job, or null.
    """

    def done(jid: str, new: str) -> str:
        return f"{jid}: put {new}"

    return _each(jids, place, as_json, lambda console, jid: console.run_recurring(jid), done)


@examples("holdfast recurring pause nightly-report --why 'the printer is broken' --until 2h")
@recurring.command()
@JIDS
@click.option("--why", default="", help="Reason, shown in lists.")
@click.option(
    "--until",
    metavar="LENGTH|TIME",
    help="When they are resumed: after a length of time such as 2h, or at a time (UTC) such as '2026-11-23 08:00' [default: not by themselves].",
)
@store_options
@json_option
def pause(jids: Sequence[str], why: str, until: str | None, place: StorePlace, as_json: bool) -> int:
    """Pause recurring jobs: they put no jobs until they are resumed, and missed jobs are skipped.

    Exit code 1 if one of them does not exist. JSON: for each whether it changed, or null.
    """

    def done(jid: str, changed: bool) -> str:
        return f"{jid} is paused" if changed else f"{jid} was paused already"

    def change(console: Console, jid: str) -> bool:
        end = 0 if until is None else end_of(until, console.now_ms())
        return console.pause_recurring(jid, why=why, until_ms=end)

    return _each(jids, place, as_json, change, done)


@examples("holdfast recurring resume nightly-report")
@recurring.command()
@JIDS
@store_options
@json_option
def resume(jids: Sequence[str], place: StorePlace, as_json: bool) -> int:
    """Resume paused recurring jobs, from the next occurrence.

    Exit code 1 if one of them does not exist. JSON: for each whether it changed, or null.
    """

    def done(jid: str, changed: bool) -> str:
        return f"{jid} is resumed" if changed else f"{jid} was not paused"

    return _each(jids, place, as_json, lambda console, jid: console.pause_recurring(jid, False), done)


def _each(
    jids: Sequence[str],
    place: StorePlace,
    as_json: bool,
    change: Callable[[Console, str], Any],
    done: Callable[[str, Any], str],
) -> int:
    """Change each recurring job, and return the exit code."""
    results: dict[str, Any] = {}
    with place.console() as console:
        for jid in dict.fromkeys(jids):
            results[jid] = _one(console, jid, change)
            if not as_json and results[jid] is not None:
                echo_text(done(jid, results[jid]))
    if as_json:
        print_json(results)
    return 1 if None in results.values() else 0


def _one(console: Console, jid: str, change: Callable[[Console, str], Any]) -> Any:
    """Change one recurring job. None if it does not exist."""
    try:
        return change(console, jid)
    except JobNotFound:
        try:
            console.recurring_job(jid)
        except HoldfastError as error:
            echo_text(f"holdfast: {error}", err=True)
        return None


@examples(
    "holdfast recurring edit nightly-report --interval 1d --priority 5",
    "holdfast recurring edit nightly-report --cron '30 3 * * *' --zone Europe/Berlin",
    """holdfast recurring edit nightly-report --data '{"format": "pdf"}' --tag slow --untag fast""",
)
@recurring.command()
@JID
@click.option("--interval", type=length, metavar="LENGTH", help="Time between two jobs, such as 10m.")
@click.option(
    "--cron",
    metavar="EXPRESSION",
    help="Cron expression that it follows from now on, or a name such as @daily.",
)
@_missed_option
@_overlap_option
@click.option("--zone", metavar="ZONE", help="Time zone of the expression, such as Europe/Berlin.")
@click.option(
    "--jitter", type=length_or_none, metavar="LENGTH", help="Time by which a job may be put later; 0s: none."
)
@click.option("--data", metavar="JSON", help="Data of its jobs.")
@click.option("--queue", shell_complete=names_of("queues"), help="Queue of its jobs.")
@click.option("--klass", help="Name of the code of its jobs.")
@put_flags("priority", "retries")
@click.option("--backlog", type=int, help="Number of missed jobs that are put later; 0: all.")
@click.option("--tag", "tags", multiple=True, help="Tag to add to its jobs; can be repeated.")
@click.option("--untag", "untags", multiple=True, help="Tag to remove; can be repeated.")
@store_options
@json_option
def edit(
    jid: str, tags: Sequence[str], untags: Sequence[str], place: StorePlace, as_json: bool, **given: Any
) -> None:
    """Change a recurring job; jobs that were put are not changed.

    A new interval counts from the last occurrence; a new expression or zone begins now. Exit code 1 if it does not exist. JSON: as `show`.
    """
    changes = {name: value for name, value in given.items() if value is not None}
    if "data" in changes:
        changes["data"] = _json(changes["data"])
    if changes.get("missed", "").isdigit():
        changes["missed"] = int(changes["missed"])
    if not changes and not tags and not untags:
        raise UsageError(
            "nothing to change: give at least one of --interval, --cron, --zone, --missed, --overlap, --jitter, --data, --priority, --retries, --queue, --klass, --backlog, --tag, --untag"
        )
    with place.console() as console:
        console.recurring_job(jid)
        if changes:
            console.update_recurring(jid, **cast("Changes", changes))
        if untags:
            console.tag_recurring(jid, *untags, remove=True)
        if tags:
            console.tag_recurring(jid, *tags)
        found = console.recurring_job(jid)
    if as_json:
        print_json(plain(found))
    else:
        named = [*changes, *(["tags"] if tags or untags else [])]
        echo_text(f"changed {', '.join(named)} of {jid}")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--data is not JSON: {error}") from None


@examples("holdfast recurring delete nightly-report", "holdfast recurring delete old-1 old-2 --yes")
@recurring.command()
@JIDS
@yes_option
@store_options
@json_option
def delete(jids: Sequence[str], yes: bool, place: StorePlace, as_json: bool) -> int:
    """Delete recurring jobs; jobs that were put are kept. Asks for confirmation.

    Exit code 1 if one of them does not exist. JSON: for each whether it existed.
    """
    names = list(dict.fromkeys(jids))
    with place.console() as console:
        confirm(f"Delete {counted(len(names), 'recurring job')}: {', '.join(names[:5])}?", yes)
        existed = dict(zip(names, console.delete_recurring(*names), strict=True))
    if as_json:
        print_json(existed)
    else:
        for jid, was_there in existed.items():
            if was_there:
                echo_text(f"deleted {jid}")
            else:
                echo_text(f'holdfast: there is no recurring job "{jid}"', err=True)
    return 0 if all(existed.values()) else 1


_RECENT_MS: Final = 86_400_000


@examples("holdfast recurring prune", "holdfast recurring prune --module shop.reports --yes")
@recurring.command()
@click.option(
    "--module", default="", metavar="MODULE", help="Only those that this module declared [default: all]."
)
@click.option(
    "--recent",
    is_flag=True,
    help="Also those that a worker put less than a day ago: other workers may still declare them [default: off].",
)
@yes_option
@store_options
@json_option
def prune(module: str, recent: bool, yes: bool, place: StorePlace, as_json: bool) -> None:
    """Delete recurring jobs that code declared and declares no more; jobs that were put are kept. Asks for confirmation.

    A worker notes at its start what its modules declare no more. JSON: `deleted` and `kept`, lists of jids.
    """
    with place.console() as console:
        now = console.now_ms()
        found = {one.jid: one for one in console.vanished_recurring(module)}
        kept = [] if recent else [jid for jid, one in found.items() if now - _put_ms(one) < _RECENT_MS]
        gone = [jid for jid in found if jid not in kept]
        if not as_json:
            _print_found([found[jid] for jid in gone], kept)
        if gone:
            confirm(f"Delete {counted(len(gone), 'recurring job')}?", yes)
        for at in range(0, len(gone), MAX_BATCH):
            console.delete_recurring(*gone[at : at + MAX_BATCH])
    if as_json:
        print_json({"deleted": gone, "kept": kept})
    elif gone:
        echo_text(f"deleted {counted(len(gone), 'recurring job')}")


def _put_ms(one: RecurringFacts) -> int:
    return one.declared.declared_ms if one.declared else 0


def _print_found(gone: Sequence[RecurringFacts], kept: Sequence[str]) -> None:
    for one in gone:
        echo_text(f"{one.jid}: {_every(one)}, {_declared(one).partition(';')[0]}")
    if kept:
        some = ", ".join(kept[:5]) + (", …" if len(kept) > 5 else "")
        echo_text(f"kept, as a worker put them less than a day ago (--recent deletes them too): {some}")
    if not gone and not kept:
        echo_text("Every declared recurring job is still declared.")
