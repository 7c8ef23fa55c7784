"""`holdfast stats`: how the queues are and how today went, as a table, as JSON, or to a statsd."""

from typing import Final

import click

from holdfast.cli.figures import SAMPLES, STATES, Figures, figures_of
from holdfast.cli.output import duration, json_option, say_json, say_table
from holdfast.cli.place import store_options
from holdfast.cli.statsd import Statsd, emit
from holdfast.client.sync import Client
from holdfast.errors import UsageError

_ALWAYS: Final = ("waiting", "running")
_TODAY: Final = ("popped", "completed", "failures", "retries", "failed")


@click.group(invoke_without_command=True)
@store_options
@json_option
@click.pass_context
def stats(context: click.Context, url: str | None, namespace: str, as_json: bool) -> None:
    """Show what is in each queue, and what happened there since midnight UTC.

    The second table is of today: how many, and how long on average jobs ran and waited. Failed are the jobs that failed
    today and still are.
    """
    if context.invoked_subcommand is not None:
        if url is not None or namespace != "default" or as_json:
            raise UsageError(f"the options of {context.invoked_subcommand} follow its name")
        return
    with Client(url, namespace=namespace) as client:
        found = figures_of(client)
    if as_json:
        say_json(found.as_dict())
    else:
        _say_text(found)


@stats.command()
@click.option("--host", default="localhost", show_default=True, help="Where statsd listens.")
@click.option("--port", type=click.IntRange(1, 65535), default=8125, show_default=True, help="Its UDP port.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 86_400),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time from one emission to the next.",
)
@click.option("--count", default=0, show_default=True, help="Emissions before it ends; 0 or less: for ever.")
@click.option("--prefix", default="", help="What every name begins with, a dot after it [default: none].")
@click.option("--postfix", default="", help="What every name ends with, a dot before it [default: none].")
@store_options
@json_option
def statsd(
    host: str,
    port: int,
    interval: float,
    count: int,
    prefix: str,
    postfix: str,
    url: str | None,
    namespace: str,
    as_json: bool,
) -> int:
    """Send the figures to a statsd as gauges, every interval.

    Dots and other characters of queues and failure groups that statsd would not keep become underscores. A store or a
    statsd that is away is said once, and tried again at the next interval. INT ends it. Exit code 1 when the last
    emission failed.
    """
    target = Statsd(host, port, prefix, postfix)
    with Client(url, namespace=namespace) as client:
        return emit(client, target, interval, count, as_json)


def _say_text(found: Figures) -> None:
    """Two tables: what is there now, without states that no queue has jobs in, and what happened today."""
    now = [
        state
        for state in (*STATES, "paused")
        if state in _ALWAYS or any(facts[state] for facts in found.queues.values())
    ]
    rows = [[name, *(facts[state] for state in now)] for name, facts in found.queues.items()]
    say_table(("queue", *now), rows)
    times = [[_time(facts[what]["avg"]) for what in SAMPLES] for facts in found.queues.values()]
    counts = [[name, *(facts[column] for column in _TODAY)] for name, facts in found.queues.items()]
    say_table(("today", *_TODAY, *SAMPLES), [row + more for row, more in zip(counts, times, strict=True)])
    click.echo(f"{found.failed} failed jobs, {found.workers} workers")


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else duration(seconds)
