"""`holdfast stats`: the queues and today's figures, as a table, as JSON, or as gauges for a statsd."""

import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import click
import msgspec

from holdfast.cli.output import duration, echo_text, json_option, say_json, say_table
from holdfast.cli.place import store_options
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, UsageError

STATES: Final = ("waiting", "running", "stalled", "throttled", "scheduled", "depends", "recurring")
SAMPLES: Final = ("run", "wait")


class Figures(msgspec.Struct, frozen=True):
    """Of one moment; days are days of UTC.

    `queues` has for each queue its jobs by state, `paused` (0 or 1), and of today `popped`, `completed`, `failures`,
    `retries`, `failed` (those that still are), and `wait` and `run` with `avg` and `std-dev` in seconds. `failures` has
    the failed jobs by group, `failed` all of them, `workers` those at work.
    """

    queues: dict[str, dict[str, Any]]
    failures: dict[str, int]
    workers: int

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
        }

    def gauges(self) -> dict[tuple[str, ...], float]:
        """Each number under the words of its name: `("queues", "mail", "run", "avg")`."""
        found: dict[tuple[str, ...], float] = {}
        for queue, facts in self.queues.items():
            for words, number in _flat(facts):
                found["queues", queue, *words] = number
        found |= {("failures", group): count for group, count in self.failures.items()}
        return found | {("failed",): self.failed, ("workers",): self.workers}


def _flat(facts: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in facts.items():
        if name in SAMPLES:
            yield from (((name, part), number) for part, number in value.items())
        else:
            yield (name,), value


def figures_of(client: Client) -> Figures:
    """Ask the store: one call for the counts, one for each queue, two for the rest."""
    queues = {facts["name"]: _queue(client, facts) for facts in client.queues.counts}
    return Figures(queues, dict(client.jobs.failed()), len(client.workers.all()))


def _queue(client: Client, counts: dict[str, Any]) -> dict[str, Any]:
    today = client.queues[counts["name"]].stats()
    return {
        **{state: counts[state] for state in STATES},
        "paused": int(counts["paused"]),
        "popped": today["wait"]["count"],
        "completed": today["run"]["count"],
        **{name: today[name] for name in ("failed", "failures", "retries")},
        **{what: {"avg": today[what]["mean"], "std-dev": today[what]["std"]} for what in SAMPLES},
    }


MOST_BYTES: Final = 1400
"""Of one packet: it fits into one frame of a network."""

_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_ODD_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")


class Statsd:
    """Where gauges go, and what their names begin and end with. Raises UsageError."""

    def __init__(self, host: str, port: int, prefix: str = "", postfix: str = "") -> None:
        for what, text in (("prefix", prefix), ("postfix", postfix)):
            if _ODD_IN_NAME.search(text):
                raise UsageError(f"--{what} {text!r} must be letters, digits, dots, dashes and underscores")
        self.host, self.port = host, port
        self._before = f"{prefix.strip('.')}." if prefix.strip(".") else ""
        self._after = f".{postfix.strip('.')}" if postfix.strip(".") else ""

    def packets(self, gauges: dict[tuple[str, ...], float]) -> Iterator[bytes]:
        """The gauges as lines, as many in one packet as have room."""
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
        """Send them; answers how many packets it took. Raises OSError if the host has no address."""
        family, kind, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)[0]
        packets = list(self.packets(gauges))
        with socket.socket(family, kind) as wire:
            for packet in packets:
                wire.sendto(packet, address)
        return len(packets)

    def _name(self, words: tuple[str, ...]) -> str:
        return self._before + ".".join(_ODD.sub("_", word) for word in words) + self._after


def emit(client: Client, target: Statsd, interval: float, count: int, as_json: bool = False) -> int:
    """Send the figures of a store every `interval` seconds, `count` times, or until INT where that is 0 or less.

    Answers 1 if the last time failed, else 0.
    """
    done, trouble, due, pause = 0, "", monotonic(), threading.Event()
    with suppress(KeyboardInterrupt):
        while True:
            before, trouble = trouble, _emit_once(client, target, as_json)
            if trouble and trouble != before:
                echo_text(f"{trouble}; tried again every {interval:g} s", err=True)
            done += 1
            if done == count:
                break
            due = max(due + interval, monotonic())
            pause.wait(due - monotonic())
    return 1 if trouble else 0


def _emit_once(client: Client, target: Statsd, as_json: bool) -> str:
    """Answers what went wrong."""
    try:
        gauges = figures_of(client).gauges()
        packets = target.send(gauges)
    except HoldfastError as error:
        return f"the store cannot be asked: {error}"
    except OSError as error:
        return f"{target.host}:{target.port} cannot be reached: {error}"
    if as_json:
        say_json({"gauges": len(gauges), "packets": packets})
    return ""


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
    statsd that cannot be reached is reported once, and tried again at the next interval. INT ends it. Exit code 1 when the last
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
