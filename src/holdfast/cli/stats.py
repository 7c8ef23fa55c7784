"""`holdfast stats`: the queues and the figures of today, as a table, as JSON, or as gauges for a statsd."""

import re
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import click
import msgspec
from click.core import ParameterSource

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import print_list
from holdfast.cli.output import FiniteRange, echo_text, json_option, print_json, repeat, watch_option
from holdfast.cli.tables import echo_wrapped
from holdfast.client.sync import Client
from holdfast.console.handles import Console
from holdfast.console.health.attention import is_silent
from holdfast.console.plain import plain
from holdfast.console.read.charts import short
from holdfast.errors import HoldfastError, UsageError
from holdfast.settings import check_host
from holdfast.text import counted, duration, one_line

STATES: Final = ("waiting", "running", "stalled", "throttled", "scheduled", "depends", "recurring")
SAMPLES: Final = ("run", "wait")


class Figures(msgspec.Struct, frozen=True):
    """The figures of one moment; days are days of UTC.

    `queues` has for each queue its jobs by state, `paused` (0 or 1), and of today `popped`, `completed`, `failures`,
    `failed` (jobs that failed today and still are), `wait` and `run` with `avg` and `std-dev` in seconds, `retried` (runs
    that ended in an exception and are repeated), and `lost` (leases), which older programs read as `retries`. `failures`
    has the failed jobs by group, `failed` their sum, `workers` the number of workers that send heartbeats, `silent` that of the others.
    """

    queues: dict[str, dict[str, Any]]
    failures: dict[str, int]
    workers: int
    silent: int

    @property
    def failed(self) -> int:
        """All failed jobs."""
        return sum(self.failures.values())

    def as_dict(self) -> dict[str, Any]:
        """The figures by name."""
        return {
            "queues": self.queues,
            "failures": self.failures,
            "failed": self.failed,
            "workers": self.workers,
            "silent": self.silent,
        }

    def gauges(self) -> dict[tuple[str, ...], float]:
        """Return each number under the parts of its name: `("queues", "mail", "run", "avg")`."""
        found: dict[tuple[str, ...], float] = {}
        for queue, facts in self.queues.items():
            for words, number in _flat(facts):
                found["queues", queue, *words] = number
        found |= {("failures", group): count for group, count in self.failures.items()}
        return found | {("failed",): self.failed, ("workers",): self.workers}

    @property
    def last_line(self) -> str:
        """The failed jobs and the workers in words."""
        silent = f", {self.silent} silent" if self.silent else ""
        return f"{counted(self.failed, 'failed job')}, {counted(self.workers, 'worker')}{silent}"


def _flat(facts: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in facts.items():
        if name in SAMPLES:
            yield from (((name, part), number) for part, number in value.items())
        else:
            yield (name,), value


def figures_of(client: Client) -> Figures:
    """Read the figures: one call for the counts, one for each queue, two for the rest."""
    queues = {facts["name"]: _queue(client, facts) for facts in client.queues.counts}
    now, workers = round(1000 * client.store_time()), client.workers.all()
    silent = sum(is_silent(worker, now) for worker in workers)
    return Figures(queues, dict(client.jobs.failed()), len(workers) - silent, silent)


def _queue(client: Client, counts: dict[str, Any]) -> dict[str, Any]:
    today = client.queues[counts["name"]].stats()
    return {
        **{state: counts[state] for state in STATES},
        "paused": int(counts["paused"]),
        "popped": today["wait"]["count"],
        "completed": today["run"]["count"],
        **{name: today[name] for name in ("failed", "failures", "retries")},
        **{what: {"avg": today[what]["mean"], "std-dev": today[what]["std"]} for what in SAMPLES},
        **{name: today[name] for name in ("retried", "lost")},
    }


MOST_BYTES: Final = 1400
"""Size of one packet, which fits into one frame of a network."""

_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_ODD_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")


class Statsd:
    """The statsd that gauges are sent to, and what their names begin and end with. Raises UsageError."""

    def __init__(self, host: str, port: int, prefix: str = "", postfix: str = "") -> None:
        for what, text in (("prefix", prefix), ("postfix", postfix)):
            if _ODD_IN_NAME.search(text):
                raise UsageError(f"--{what} {text!r} must be letters, digits, dots, dashes and underscores")
        self.host, self.port = check_host("--host", host), port
        self._before = f"{prefix.strip('.')}." if prefix.strip(".") else ""
        self._after = f".{postfix.strip('.')}" if postfix.strip(".") else ""

    def packets(self, gauges: dict[tuple[str, ...], float]) -> Iterator[bytes]:
        """Return the gauges as lines, as many in a packet as fit."""
        packet = b""
        for words, number in gauges.items():
            line = f"{self._name(words)}:{number:.6f}".rstrip("0").rstrip(".").encode() + b"|g"
            if packet and len(packet) + len(line) >= MOST_BYTES:
                yield packet
                packet = b""
            packet += (b"\n" if packet else b"") + line
        if packet:
            yield packet

    def send(self, gauges: dict[tuple[str, ...], float]) -> int:
        """Send the gauges and return the number of packets. Raises OSError if the host has no address."""
        family, kind, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)[0]
        packets = list(self.packets(gauges))
        with socket.socket(family, kind) as wire:
            for packet in packets:
                wire.sendto(packet, address)
        return len(packets)

    def _name(self, words: tuple[str, ...]) -> str:
        return self._before + ".".join(_ODD.sub("_", word) for word in words) + self._after


def emit(client: Client, target: Statsd, interval: float, count: int, as_json: bool = False) -> int:
    """Send the figures of a store every `interval` seconds, `count` times, or until INT if `count` is 0 or less.

    Returns the exit code: 1 if the last time failed, else 0.
    """
    done, trouble, due, pause = 0, "", monotonic(), threading.Event()
    with suppress(KeyboardInterrupt):
        while True:
            before, trouble = trouble, _emit_once(client, target, as_json)
            if trouble and trouble != before:
                echo_text(f"{trouble}; trying again every {duration(interval)}", err=True)
            done += 1
            if done == count:
                break
            due = max(due + interval, monotonic())
            pause.wait(due - monotonic())
    return 1 if trouble else 0


def _emit_once(client: Client, target: Statsd, as_json: bool) -> str:
    """Send once, and return what went wrong."""
    try:
        gauges = figures_of(client).gauges()
        packets = target.send(gauges)
    except HoldfastError as error:
        return f"the store cannot be read: {error}"
    except OSError as error:
        return f"{target.host}:{target.port} cannot be reached: {error}"
    if as_json:
        print_json({"gauges": len(gauges), "packets": packets})
    return ""


MOST_SHOWN: Final = 10
_ALWAYS: Final = ("waiting", "running")
_TODAY: Final = ("popped", "completed", "failures", "retried", "lost", "failed")


@examples("holdfast stats", "holdfast stats --watch 5", "holdfast stats statsd --host metrics.local")
@click.group(invoke_without_command=True)
@click.option("--all", "each", is_flag=True, help="Show every finding, even if many are of one kind.")
@watch_option
@store_options
@json_option
@click.pass_context
def stats(context: click.Context, each: bool, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """Show findings, the jobs in each queue by state, and their counts since midnight UTC.

    Findings come first, the most urgent on top, each with a command that helps. The second table counts runs: popped,
    completed, failures, retried (after an exception), lost (the lease). Failed counts the jobs that failed today and have
    not been retried. Run and wait are averages. JSON: also `attention`, a list of `severity` (urgent, warning, note), `kind`,
    `subject`, `text`, `command`, `also` (another command), `details`, `count` (how many things it stands for), `jobs` (how many jobs it is about) and `since`;
    and `store`, how full its memory is and what fills it. Snoozed and muted findings are left out.
    """
    if context.invoked_subcommand is not None:
        names = ("url", "namespace", "wait", "as_json", "watch", "each")
        if any(context.get_parameter_source(name) == ParameterSource.COMMANDLINE for name in names):
            raise UsageError(f"the options of {context.invoked_subcommand} follow its name")
        return
    with place.client(must_exist=True) as client:
        repeat(watch, lambda: _show(client, each, as_json))


def _show(client: Client, each: bool, as_json: bool) -> None:
    seen, found = Console(client).overview(each=each), figures_of(client)
    if as_json:
        attention = [plain(one) for one in seen.attention]
        print_json({**found.as_dict(), "attention": attention, "store": plain(seen.store)})
        return
    if not seen.attention:
        echo_text(seen.sentence)
    shown = seen.attention if each else seen.attention[:MOST_SHOWN]
    for one in shown:
        echo_wrapped(one_line(f"{one.severity}: {one.sentence}"))
        for line in one.details:
            echo_wrapped(one_line(f"- {line}"))
        for command in filter(None, (one.command, one.also)):
            echo_text(f"  {command}")
    more = seen.finding_count - len(shown)
    if more:
        click.echo(f"and {counted(more, 'more finding')}; --all shows all")
    if seen.snoozed:
        click.echo(f"{counted(len(seen.snoozed), 'finding')} snoozed")
    _print_text(found)


@examples("holdfast stats statsd --host metrics.local --prefix shop")
@stats.command()
@click.option("--host", default="localhost", show_default=True, help="Host of the statsd.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8125, show_default=True, help="UDP port of the statsd."
)
@click.option(
    "--interval",
    type=FiniteRange(0.1, 86_400),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two emissions.",
)
@click.option("--count", default=0, show_default=True, help="Number of emissions; 0: until INT.")
@click.option("--prefix", default="", help="Prefix of every name, separated by a dot [default: none].")
@click.option("--postfix", default="", help="Suffix of every name, separated by a dot [default: none].")
@store_options
@json_option
def statsd(
    host: str,
    port: int,
    interval: float,
    count: int,
    prefix: str,
    postfix: str,
    place: StorePlace,
    as_json: bool,
) -> int:
    """Send the figures to a statsd as gauges, once every interval, until INT.

    Dots and other characters that statsd does not allow in the names of queues and failure groups become underscores. If the
    store or the statsd cannot be reached, that is reported once and tried again at the next interval. Exit code 1 if the last
    emission failed.
    """
    target = Statsd(host, port, prefix, postfix)
    with place.unchecked() as client:
        return emit(client, target, interval, count, as_json)


def _print_text(found: Figures) -> None:
    """Print two tables: the jobs by state, without states that no queue has jobs in, and the figures of today."""
    now = [
        state
        for state in (*STATES, "paused")
        if state in _ALWAYS or any(facts[state] for facts in found.queues.values())
    ]
    if not found.queues and sys.stdout.isatty():
        click.echo(found.last_line)
        return
    rows = [[name, *(facts[state] for state in now)] for name, facts in found.queues.items()]
    if sys.stdout.isatty():
        click.echo()
    print_list(("queue", *now), rows, whole=())
    times = [[_time(facts[what]["avg"]) for what in SAMPLES] for facts in found.queues.values()]
    counts = [[name, *(facts[column] for column in _TODAY)] for name, facts in found.queues.items()]
    cells = [row + more for row, more in zip(counts, times, strict=True)]
    if sys.stdout.isatty():
        click.echo()
    print_list(("today", *_TODAY, *SAMPLES), cells, whole=())
    click.echo(found.last_line)


def _time(seconds: float) -> str:
    return short(seconds)
