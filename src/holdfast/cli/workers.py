"""`holdfast workers`: list workers, check that they are alive, quiet and resume them."""

import json
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import click

from holdfast.cli.connection import Place, store_options, wait_option, with_place
from holdfast.cli.output import duration, echo_text, json_option, print_json, print_table
from holdfast.client.sync import Client
from holdfast.client.workers import is_meant
from holdfast.commands.workers import WorkerFacts

MAX_AGE: Final = 30.0  # seconds; a worker sends a heartbeat every ten

_COLUMNS: Final = ("worker", "host", "pid", "pool", "queues", "busy", "slots", "up", "seen", "quiet", "stuck")


@click.group()
def workers() -> None:
    """List, check, quiet and resume workers."""


@workers.command("list")
@store_options
@json_option
def list_workers(place: Place, as_json: bool) -> None:
    """List the workers, the most recently seen first."""
    with place.client(must_exist=True) as client:
        now, found = client.store_time(), client.workers.all()
    rows = [_facts_of(worker, now) for worker in found]
    if as_json:
        print_json(rows)
    else:
        print_table(_COLUMNS, [_cells(row) for row in rows])


@workers.command()
@click.argument("names", metavar="[NAME]…", nargs=-1)
@click.option(
    "--host", default="", help="Only workers of this machine [default: this one, if no NAME is given]."
)
@click.option(
    "--max-age",
    type=click.FloatRange(0.1),
    default=MAX_AGE,
    show_default=True,
    metavar="SECONDS",
    help="Longest time since the last heartbeat of a worker that counts as alive.",
)
@with_place
@wait_option("--wait", "--timeout")
@json_option
def check(names: Sequence[str], host: str, max_age: float, place: Place, as_json: bool) -> int:
    """Check whether workers are alive, for health checks of containers.

    NAME is the name of a worker, or the --name of a worker command, which stands for all its children. Exit code 0 if for
    each NAME (or on the machine) at least one worker sent a heartbeat within --max-age, 1 if not, 3 if the store does not
    respond.
    """
    if not names and not host:
        host = socket.gethostname()
    with place.client() as client:
        now, found = client.store_time(), client.workers.all()
    rows = [_facts_of(worker, now) for worker in found if not host or worker.facts.get("host") == host]
    known = {name: [row for row in rows if is_meant(name, row["name"])] for name in names} or {host: rows}
    alive = {name: [row["name"] for row in of if row["silent"] <= max_age] for name, of in known.items()}
    if as_json:
        print_json({"alive": all(alive.values()), "workers": alive})
    else:
        for name, living in alive.items():
            echo_text(_verdict(name, living, known[name], max_age))
    return 0 if all(alive.values()) else 1


@workers.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@store_options
def quiet(names: Sequence[str], place: Place) -> int:
    """Have workers finish their jobs and take no more.

    Exit code 1 if one of them is not known.
    """
    return _for_each(names, place, lambda client, name: client.workers.quiet(name), "is quiet now")


@workers.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@store_options
def resume(names: Sequence[str], place: Place) -> int:
    """Have quiet workers take jobs again.

    Exit code 1 if one of them is not known.
    """
    return _for_each(names, place, lambda client, name: client.workers.resume(name), "takes jobs again")


def _for_each(names: Sequence[str], place: Place, change: Callable[[Client, str], bool], done: str) -> int:
    """Change each worker that one of the names stands for, and return the exit code."""
    unknown = 0
    with place.client(must_exist=True) as client:
        for name in names:
            known = [worker.name for worker in client.workers.all() if is_meant(name, worker.name)]
            changed = [worker for worker in known if change(client, worker)]
            for worker in changed:
                echo_text(f"{worker} {done}")
            if not changed:
                unknown += 1
                echo_text(f"holdfast: no worker {name} is known", err=True)
    return 1 if unknown else 0


def _facts_of(worker: WorkerFacts, now: float) -> dict[str, Any]:
    """Return what is known of a worker. Its own report may hold anything; what cannot be read is left out."""
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
