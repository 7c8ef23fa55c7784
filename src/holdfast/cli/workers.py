"""`holdfast workers`: who works here, whether one of them lives, and telling one to be quiet."""

import json
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import click

from holdfast.cli.output import duration, echo_text, json_option, say_json, say_table
from holdfast.cli.place import store_options
from holdfast.client.sync import Client
from holdfast.client.workers import is_meant
from holdfast.commands.workers import WorkerFacts

ALIVE: Final = 30.0  # seconds; a worker gives a sign of life every ten

_COLUMNS: Final = ("worker", "host", "pid", "pool", "queues", "busy", "slots", "up", "seen", "quiet", "stuck")


@click.group()
def workers() -> None:
    """List, check, quiet and resume workers."""


@workers.command("list")
@store_options
@json_option
def list_workers(url: str | None, namespace: str, as_json: bool) -> None:
    """List the workers, the most recently seen first."""
    with Client(url, namespace=namespace) as client:
        now, found = client.store_time(), client.workers.all()
    rows = [_shown(worker, now) for worker in found]
    if as_json:
        say_json(rows)
    else:
        say_table(_COLUMNS, [_cells(row) for row in rows])


@workers.command()
@click.argument("names", metavar="[NAME]…", nargs=-1)
@click.option(
    "--host", default="", help="Only workers of this machine [default: this one, if no name is given]."
)
@click.option(
    "--max-age",
    type=click.FloatRange(0.1),
    default=ALIVE,
    show_default=True,
    help="Seconds since the last sign of life.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.01),
    default=5.0,
    show_default=True,
    help="Seconds to wait for the store.",
)
@store_options
@json_option
def check(
    names: Sequence[str],
    host: str,
    max_age: float,
    timeout: float,
    url: str | None,
    namespace: str,
    as_json: bool,
) -> int:
    """Check whether workers are alive: for health checks of containers.

    NAME is the name of one, or the --name that a worker command was given, whose children add a number. Exit code 0 when for each name
    (or on the machine) at least one gave a sign of life within --max-age, 1 when not, 3 when the store cannot be reached.
    """
    if not names and not host:
        host = socket.gethostname()
    with Client(url, namespace=namespace, deadline=timeout) as client:
        now, found = client.store_time(), client.workers.all()
    rows = [_shown(worker, now) for worker in found if not host or worker.facts.get("host") == host]
    asked = {name: [row for row in rows if is_meant(name, row["name"])] for name in names} or {host: rows}
    living = {name: [row["name"] for row in of if row["silent"] <= max_age] for name, of in asked.items()}
    if as_json:
        say_json({"alive": all(living.values()), "workers": living})
    else:
        for name, alive in living.items():
            echo_text(_verdict(name, alive, asked[name], max_age))
    return 0 if all(living.values()) else 1


@workers.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@store_options
def quiet(names: Sequence[str], url: str | None, namespace: str) -> int:
    """Have workers finish their jobs and take no more.

    Exit code 1 when one of them is not known.
    """
    return _tell(names, url, namespace, lambda client, name: client.workers.quiet(name), "is quiet now")


@workers.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@store_options
def resume(names: Sequence[str], url: str | None, namespace: str) -> int:
    """Have quiet workers take jobs again.

    Exit code 1 when one of them is not known.
    """
    return _tell(names, url, namespace, lambda client, name: client.workers.resume(name), "takes jobs again")


def _tell(
    names: Sequence[str], url: str | None, namespace: str, tell: Callable[[Client, str], bool], done: str
) -> int:
    unknown = 0
    with Client(url, namespace=namespace) as client:
        for name in names:
            meant = [worker.name for worker in client.workers.all() if is_meant(name, worker.name)]
            told = [worker for worker in meant if tell(client, worker)]
            for worker in told:
                echo_text(f"{worker} {done}")
            if not told:
                unknown += 1
                echo_text(f"holdfast: no worker {name} is known", err=True)
    return 1 if unknown else 0


def _shown(worker: WorkerFacts, now: float) -> dict[str, Any]:
    """What is known of a worker. What it said of itself may be anything: it is shown only where it can be read."""
    facts = worker.facts
    started = _whole(facts.get("started"))
    return {
        "name": worker.name,
        "host": facts.get("host", ""),
        "pid": _whole(facts.get("pid")),
        "pool": facts.get("pool", ""),
        "version": facts.get("version", ""),
        "queues": _queues(facts.get("queues", "")),
        "busy": _whole(facts.get("busy")),
        "seats": _whole(facts.get("slots")),
        "up": None if started is None else max(0.0, round(now - started / 1000, 3)),
        "silent": max(0.0, round(now - worker.seen_ms / 1000, 3)),
        "quiet": worker.quiet,
        "stuck": _whole(facts.get("stuck")) or 0,
    }


def _cells(row: dict[str, Any]) -> Sequence[object]:
    up = "" if row["up"] is None else duration(row["up"])
    seen, quiet = duration(row["silent"]) + " ago", "yes" if row["quiet"] else ""
    queues = ", ".join(row["queues"])
    return (
        row["name"],
        row["host"],
        row["pid"],
        row["pool"],
        queues,
        row["busy"],
        row["seats"],
        up,
        seen,
        quiet,
        duration(row["stuck"]) if row["stuck"] else "",
    )


def _verdict(name: str, alive: Sequence[str], known: Sequence[dict[str, Any]], max_age: float) -> str:
    if alive:
        return f"{name}: {len(alive)} alive: {', '.join(alive)}"
    if not known:
        return f"{name}: no worker is known"
    silent = min(row["silent"] for row in known)
    return f"{name}: silent for {duration(silent)}, longer than {duration(max_age)}"


def _whole(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None


def _queues(text: str) -> list[str]:
    try:
        found: object = json.loads(text)
    except ValueError:
        return []
    return list(map(str, cast("Any", found))) if isinstance(found, list) else []
