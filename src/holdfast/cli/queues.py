"""`holdfast queues`: list and show queues, pause and resume them, set their limits."""

import time
from collections.abc import Sequence
from typing import Any, Final, cast

import click

from holdfast.cli.bulk import run_bulk
from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.options import NEGATIVE, OptionPart, day, length, list_options, print_list, print_rest
from holdfast.cli.output import (
    echo_text,
    json_option,
    print_facts,
    print_json,
    progress,
    repeat,
    watch_option,
    yes_option,
)
from holdfast.cli.tables import cut_line, sparkline
from holdfast.client.reasons import silence
from holdfast.commands.queues import QueueOption
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.console.plain import plain
from holdfast.console.read.charts import histogram, rates, short
from holdfast.console.read.queries import SORTS, QueueDetail, Series
from holdfast.console.search.filter_values import Exact
from holdfast.models import Counts, Sample, Stats
from holdfast.settings import MAX_BATCH
from holdfast.text import age, ago, counted, duration, listed, moment

# `holdfast queues stats`: percentiles, histograms and throughput of one queue, drawn with letters.

_PERCENTS: Final = (50, 90, 99)
_WIDTH: Final = 20
_STEP_MS: Final = 180_000
_COLUMNS: Final = 60


@examples("holdfast queues stats mail", "holdfast queues stats mail --day yesterday --json")
@click.command()
@click.argument("name", shell_complete=names_of("queues"))
@click.option(
    "--day",
    "date",
    type=day,
    default="today",
    metavar="DAY",
    help="Day (UTC), such as 2026-11-23 or yesterday [default: today].",
)
@watch_option
@store_options
@json_option
def stats(name: str, date: int, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """Show how long the jobs of a queue waited and ran on a day, and their number in the last three hours.

    Percentiles come from histogram buckets, and are exact to about a quarter. Exit code 1 if there is no such queue. JSON: `queue`, `day`, `stats` with
    `percentiles` in seconds and `histogram` as [end of the bar in words, jobs by wait, jobs by run], and `series`.
    """
    with place.console() as console:
        repeat(watch, lambda: _show_stats(console, name, date, as_json))


def _show_stats(console: Console, name: str, day: int, as_json: bool) -> None:
    found, now = console.queue(name, day_ms=day), console.now_ms()
    if as_json:
        print_json(_plain(found, day or now))
        return
    date = moment(day or now)[:10]
    counts = found.stats
    echo_text(cut_line(f"{name} on {date} (UTC)"))
    click.echo(_sentence(counts))
    if counts.wait.count or counts.run.count:
        click.echo()
        rows = [_times("wait", counts.wait), _times("run", counts.run)]
        print_list(("", "jobs", "mean", *(f"p{percent}" for percent in _PERCENTS), "max"), rows, whole=())
        _print_histogram(counts)
    print_throughput(found.series, now)


def _sentence(stats: Stats) -> str:
    counts = {
        "popped": stats.wait.count,
        "completed": stats.run.count,
        "failures": stats.failures,
        "retried": stats.retried,
        "lost": stats.lost,
        "still failed": stats.failed,
    }
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


def _times(what: str, sample: Sample) -> Sequence[object]:
    times = [sample.percentile(percent) for percent in (*_PERCENTS, 100)]
    return (what, sample.count, short(sample.mean), *map(short, times))


def _print_histogram(stats: Stats) -> None:
    rows = histogram((stats.wait, stats.run))
    most = [max((counts[at] for _, counts in rows), default=0) for at in range(2)]
    cells = [
        (label, waits or "", _bar(waits, most[0]), runs or "", _bar(runs, most[1]))
        for label, (waits, runs) in rows
    ]
    click.echo()
    print_list(("up to", "waits", "wait", "runs", "run"), cells, whole=("up to", "wait", "run"))


def print_throughput(series: Sequence[Series], now: int) -> None:
    """Print what was put, completed and failed in the last three hours, as sparklines."""
    lines: list[tuple[str, str, str]] = []
    for what in ("put", "completed", "failed"):
        values = rates(series, what, now, _STEP_MS, _COLUMNS)
        total = round(sum(values))
        if total or what != "failed":
            lines.append((what, sparkline([round(value) for value in values]), f"{total:,}"))
    if any(count != "0" for _, _, count in lines):
        click.echo()
        click.echo("Last three hours:")
        for what, line, count in lines:
            click.echo(f"{what:<9} |{line}| {count}")


def _bar(value: float, most: float) -> str:
    """Return a bar whose length is proportional to a value; at least one character unless the value is 0."""
    return "█" * (max(round(value / most * _WIDTH), 1) if value > 0 and most > 0 else 0)


def percentiles(stats: Stats) -> dict[str, dict[str, float]]:
    """Return p50, p90, p99 and the maximum of wait and run in seconds, for JSON."""
    return {
        what: {
            **{f"p{percent}": sample.percentile(percent) for percent in _PERCENTS},
            "max": sample.percentile(100),
        }
        for what, sample in (("wait", stats.wait), ("run", stats.run))
    }


def _plain(found: QueueDetail, day: int) -> dict[str, Any]:
    stats = found.stats
    rows = [[label, *counts] for label, counts in histogram((stats.wait, stats.run))]
    return {
        "queue": found.counts.name,
        "day": moment(day)[:10],
        "stats": {**stats.as_dict(), "percentiles": percentiles(stats)},
        "histogram": rows,
        "series": [plain(line) for line in found.series],
    }


# `holdfast queues purge` and `drain`: cancel the jobs of a queue, or wait until it has no work left.

_STATES: Final = ("waiting", "running", "stalled", "throttled")
_PAUSE: Final = 0.5


STATES: Final = ("waiting", "scheduled", "throttled", "depends", "stalled", "running", "failed")


def _states(text: str) -> str:
    """Return names of states with commas between, checked. Raises click.BadParameter."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names or [text]:
        if name not in STATES:
            raise click.BadParameter(f"expected some of {', '.join(STATES)}, got {name!r:.80}")
    return ",".join(dict.fromkeys(names))


@examples(
    "holdfast queues purge mail --dry-run",
    "holdfast queues purge mail --state waiting,scheduled,failed --yes",
)
@click.command()
@click.argument("name", shell_complete=names_of("queues"))
@click.option(
    "--state",
    type=_states,
    default="waiting",
    show_default=True,
    metavar="STATES",
    help=f"States, separated by commas: {', '.join(STATES)}.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be cancelled, and change nothing.")
@yes_option
@store_options
@json_option
def purge(name: str, state: str, dry_run: bool, yes: bool, place: StorePlace, as_json: bool) -> int:
    """Cancel all jobs of a queue that are in the given states. Shows what would be cancelled, and asks for confirmation.

    It runs as one operation, which `holdfast operations` shows, and resumes if it was stopped. Exit code 1 if there
    is no such queue, or if some jobs were refused, such as those that others depend on.
    """
    with place.console() as console:
        known = Exact(console.known_queue(name))
        spec = Spec(action="cancel", filter=f"queue:{known} state:{state}")
        return run_bulk(console, spec, yes=yes, dry_run=dry_run, as_json=as_json)


@examples(
    "holdfast queues drain mail --timeout 10m",
    "holdfast queues drain mail && systemctl stop mail-worker",
)
@click.command()
@click.argument("name", shell_complete=names_of("queues"))
@click.option(
    "--timeout",
    type=length,
    metavar="LENGTH",
    help="Give up after this time, such as 10m [default: never].",
)
@store_options
@json_option
def drain(name: str, timeout: float | None, place: StorePlace, as_json: bool) -> int:
    """Wait until no job of a queue is waiting, running, stalled or throttled.

    Puts are not refused, so stop the producers first. Scheduled and depending jobs are waited for only once they are ready.
    Exit code 0 when it is empty, 1 if it is not empty in time or not known. JSON: `queue`, `drained`, `left` by state, `seconds`.
    """
    begun = time.monotonic()
    with place.console() as console:
        console.known_queue(name)
        left = _wait(console, name, None if timeout is None else begun + timeout)
    count, took = sum(left), time.monotonic() - begun
    if as_json:
        facts = {"queue": name, "drained": not count, "left": dict(zip(_STATES, left, strict=True))}
        print_json({**facts, "seconds": round(took, 3)})
    elif not count:
        echo_text(f"{name} is empty, after {duration(round(took, 1))}")
    else:
        echo_text(f"holdfast: {name} still has {_left(left)} after {duration(round(took, 1))}", err=True)
    return 1 if count else 0


def _wait(console: Console, name: str, until: float | None) -> list[int]:
    """Wait until a queue is empty or the time is up, and return how many jobs it has in each state."""
    [counts] = console.counts(name)
    left = _numbers(counts)
    if counts.paused and any(left):
        echo_text(f"{name} is paused: no worker takes its jobs until it is resumed", err=True)
    seen = sum(left)
    with progress(name, seen) as step:
        while seen and (until is None or time.monotonic() < until):
            time.sleep(_PAUSE if until is None else max(min(_PAUSE, until - time.monotonic()), 0))
            [counts] = console.counts(name)
            left = _numbers(counts)
            step(seen - sum(left))
            seen = sum(left)
    return left


def _numbers(counts: Counts) -> list[int]:
    return [int(getattr(counts, state)) for state in _STATES]


def _left(left: list[int]) -> str:
    return ", ".join(f"{count:,} {state}" for count, state in zip(left, _STATES, strict=True) if count)


_ALWAYS: Final = ("waiting", "running", "failed")
_OTHERS: Final = ("scheduled", "stalled", "throttled", "depends", "recurring")
_EMPTY: Final = "There are no queues yet. To put a first job:\n  holdfast put NAME --queue QUEUE"
_LIMITS: Final = ("max-waiting", "max-losses")


@click.group(cls=OrderedGroup)
def queues() -> None:
    """Show, pause, resume, purge, drain and set queues."""


@examples(
    "holdfast queues list 'mail-*' --sort failed",
    "holdfast queues list --sort oldest --limit 10 --watch 5",
)
@queues.command("list")
@click.argument("pattern", default="*", shell_complete=names_of("queues"))
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="name",
    show_default=True,
    help="Sort by name, by a number (largest first), or by the age of the next job.",
)
@list_options()
@watch_option
@store_options
@json_option
def list_queues(
    pattern: str, sort: str, part: OptionPart, watch: float | None, place: StorePlace, as_json: bool
) -> None:
    """List queues with the number of their jobs in each state.

    * in PATTERN matches any text. `oldest` is the time since which the next job has waited. JSON: `queues`, `next` (for --after, "" at the end) and
    `total`; times are in seconds.
    """
    with place.console() as console:

        def show() -> None:
            now = console.now_ms()
            page = part.read(
                lambda after, limit: console.queues(pattern, sort=sort, after=after, limit=limit)
            )
            if as_json:
                print_json(
                    {"queues": [plain(row) for row in page.rows], "next": page.next, "total": page.total}
                )
                return
            columns = ("queue", *_ALWAYS, "oldest", "paused", *_OTHERS)
            print_list(
                columns,
                [_cells(row, now) for row in page.rows],
                whole=(),
                optional=_OTHERS,
                empty=_EMPTY if pattern == "*" else f"No queue matches {pattern!r}.",
            )
            print_rest(len(page.rows), page, "queue")

        repeat(watch, show)


def _cells(row: Counts, now: int) -> Sequence[object]:
    return (
        row.name,
        *(getattr(row, state) for state in _ALWAYS),
        age(row.oldest_ms, now),
        _pause(row, now),
        *(getattr(row, state) for state in _OTHERS),
    )


def _pause(row: Counts, now: int) -> str:
    if not row.paused:
        return ""
    until = f", resumes {ago(row.paused_until_ms, now)}" if row.paused_until_ms else ""
    why = f": {row.paused_why}" if row.paused_why else ""
    return f"by {row.paused_by or 'an unnamed user'}{why}{until}"


@examples("holdfast queues show mail", "holdfast queues show mail --json")
@queues.command()
@click.argument("name", shell_complete=names_of("queues"))
@watch_option
@store_options
@json_option
def show(name: str, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """Show one queue: its jobs by state, its pause and limits, its workers, and its recent activity.

    Exit code 1 if there is no such queue. JSON: `counts`, `stats` of today, `series` of the last three hours, `throttle`,
    `limits`, `workers` (those that take its jobs), `quiet_workers`, `silent_workers`, `growth`, by how many jobs a minute more
    wait, and `drains_in`, the seconds until nothing waits at this rate, both of the last minutes and null where they are not known.
    """
    with place.console() as console:
        repeat(watch, lambda: _show(console, name, as_json))


def _show(console: Console, name: str, as_json: bool) -> None:
    found, now = console.queue(name), console.now_ms()
    if as_json:
        print_json(detail(found))
        return
    print_facts(_facts(found, now))
    print_throughput(found.series, now)


def detail(found: QueueDetail) -> dict[str, Any]:
    """Return one queue for JSON."""
    throttle = found.throttle
    return {
        "counts": plain(found.counts),
        "stats": {**found.stats.as_dict(), "percentiles": percentiles(found.stats)},
        "series": [plain(line) for line in found.series],
        "throttle": {
            "maximum": throttle.maximum,
            "used": throttle.used,
            "pending": throttle.pending,
            "ttl": throttle.ttl,
        },
        "limits": {option: found.options.get(option) for option in _LIMITS},
        "workers": list(found.workers),
        "quiet_workers": list(found.quiet_workers),
        "silent_workers": [plain(one) for one in found.silent_workers],
        "drains_in": found.drains_in,
        "growth": found.growth,
    }


def _facts(found: QueueDetail, now: int) -> dict[str, object]:
    counts, throttle = found.counts, found.throttle
    states = [(state, getattr(counts, state)) for state in (*_ALWAYS, *_OTHERS)]
    limit = f"{throttle.used:,} of {throttle.maximum:,} slots used, {counted(throttle.pending, 'job waits', 'jobs wait')} for one"
    return {
        "queue": counts.name,
        "jobs": ", ".join(f"{count:,} {state}" for state, count in states if count or state in _ALWAYS),
        "paused": _pause(counts, now)
        + (f", since {moment(counts.paused_since_ms)}" if counts.paused else ""),
        "next job": f"waits since {ago(counts.oldest_ms, now).removesuffix(' ago')}"
        if counts.oldest_ms
        else "",
        "next due": ago(counts.next_ms, now),
        "drains in": "" if found.drains_in is None else duration(round(found.drains_in)),
        "workers": _workers(found, now),
        "lease": duration(counts.heartbeat_ms / 1000),
        "throttle": limit if throttle.maximum else "",
        **{option: found.options.get(option) for option in _LIMITS},
    }


def _workers(found: QueueDetail, now: int) -> str:
    text = ", ".join(found.workers) or "none takes jobs from this queue"
    if found.quiet_workers:
        text += f"; quiet: {', '.join(found.quiet_workers)}"
    if found.silent_workers:
        text += "; " + silence({one.name: one.seen_ms for one in found.silent_workers}, now)
    return text


@examples("holdfast queues pause mail --why 'mail server is down' --for 2h", "holdfast queues pause 'mail-*'")
@queues.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True, shell_complete=names_of("queues"))
@click.option("--why", default="", help="Reason, shown in lists.")
@click.option(
    "--for",
    "seconds",
    type=length,
    metavar="LENGTH",
    help="Resume automatically after this time, such as 2h.",
)
@store_options
@json_option
def pause(names: Sequence[str], why: str, seconds: float | None, place: StorePlace, as_json: bool) -> None:
    """Pause queues: workers take no jobs from them; running jobs continue.

    * in NAME matches any text. Exit code 1, without a change, if one of them is not known.
    """
    with place.console() as console:
        found = console.queue_names(*names)
        changed = sum(console.pause(*some, why=why, seconds=seconds or 0) for some in _slices(found))
    _print_changed("paused", found, changed, as_json)


@examples("holdfast queues resume mail", "holdfast queues resume 'mail-*'")
@queues.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True, shell_complete=names_of("queues"))
@store_options
@json_option
def resume(names: Sequence[str], place: StorePlace, as_json: bool) -> None:
    """Resume paused queues.

    * in NAME matches any text. Exit code 1, without a change, if one of them is not known.
    """
    with place.console() as console:
        found = console.queue_names(*names)
        changed = sum(console.resume(*some) for some in _slices(found))
    _print_changed("resumed", found, changed, as_json)


def _slices(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[at : at + MAX_BATCH] for at in range(0, len(names), MAX_BATCH)]


_SHOWN: Final = 10


def _print_changed(what: str, names: Sequence[str], changed: int, as_json: bool) -> None:
    if as_json:
        print_json({"queues": list(names), "changed": changed})
        return
    same = f" ({counted(len(names) - changed, 'queue')} already {what})" if changed < len(names) else ""
    echo_text(f"{what} {listed(names, _SHOWN)}{same}")


def _number(text: str) -> int:
    """Return a whole number, -1 for `none`. Raises click.BadParameter."""
    if text.lower() == "none":
        return -1
    if not text.isdecimal():
        raise click.BadParameter(f"expected a whole number or none, got {text!r:.80}")
    return int(text)


@examples("holdfast queues set mail max-waiting 100000", "holdfast queues set mail max-losses none")
@queues.command("set", context_settings=NEGATIVE)
@click.argument("name", shell_complete=names_of("queues"))
@click.argument("option", type=click.Choice(_LIMITS))
@click.argument("value", type=_number, metavar="N|none")
@store_options
@json_option
def set_option(name: str, option: str, value: int, place: StorePlace, as_json: bool) -> None:
    """Set a limit of a queue; none removes it.

    max-waiting: puts are refused while N jobs of the queue have not started. max-losses: a job fails when it has lost its
    lease more than N times, whatever its retries.
    """
    number = None if value < 0 else value
    with place.console() as console:
        console.set_queue(console.known_queue(name), cast("QueueOption", option), number)
    if as_json:
        print_json({"queue": name, "option": option, "value": number})
    else:
        echo_text(f"{option} of {name} is {'none' if number is None else number}")


@examples("holdfast queues forget mail-2025")
@queues.command()
@click.argument("name", shell_complete=names_of("queues"))
@store_options
@json_option
def forget(name: str, place: StorePlace, as_json: bool) -> None:
    """Remove an empty queue from the list, with its settings and statistics.

    Exit code 1 if it still has jobs (failed ones count too), or if it is not known.
    """
    with place.console() as console:
        console.forget_queue(console.known_queue(name))
    if as_json:
        print_json({"queue": name, "forgotten": True})
    else:
        echo_text(f"forgot {name}")


queues.add_command(purge)
queues.add_command(drain)
queues.add_command(stats)
