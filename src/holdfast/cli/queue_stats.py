"""`holdfast queues stats`: percentiles, histograms and throughput of one queue, drawn with letters."""

from collections.abc import Sequence
from typing import Any, Final

import click

from holdfast.cli.completion import names_of
from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import day, print_list
from holdfast.cli.output import echo_text, json_option, print_json, repeat, watch_option
from holdfast.cli.tables import cut_line, sparkline
from holdfast.console.handles import Console
from holdfast.console.plain import plain
from holdfast.console.read.charts import histogram, rates, short
from holdfast.console.read.queries import QueueDetail, Series
from holdfast.models import Sample, Stats
from holdfast.text import moment

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
    help="Day of UTC: 2026-11-23, yesterday [default: today].",
)
@watch_option
@store_options
@json_option
def stats(name: str, date: int, watch: float | None, place: Place, as_json: bool) -> None:
    """Show how long the jobs of a queue waited and ran on a day, and how many there were in the last three hours.

    Percentiles are read from buckets a quarter wide. Exit code 1 if there is no such queue. JSON: `queue`, `day`, `stats` with
    `percentiles` in seconds and `histogram` as [end of the bar in words, jobs by wait, jobs by run], and `series`.
    """
    with place.console() as console:
        repeat(watch, lambda: _show(console, name, date, as_json))


def _show(console: Console, name: str, day: int, as_json: bool) -> None:
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
        click.echo("The last three hours, until now:")
        for what, line, count in lines:
            click.echo(f"{what:<9} |{line}| {count}")


def _bar(value: float, most: float) -> str:
    """Return a bar as long as a value is; at least one letter for what is not 0."""
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
