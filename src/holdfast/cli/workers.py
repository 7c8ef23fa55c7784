"""`holdfast workers`: list workers, check that they are alive, quiet and resume them."""

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, store_options, wait_option, with_place
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.options import length, print_list
from holdfast.cli.output import (
    FiniteRange,
    echo_text,
    json_option,
    print_facts,
    print_json,
    repeat,
    watch_option,
)
from holdfast.client.stacks import STACK_TIMEOUT_S
from holdfast.client.workers import is_meant
from holdfast.commands.workers import HeldJob, WorkerFacts
from holdfast.console.handles import Console
from holdfast.console.health.attention import is_silent
from holdfast.console.read.queries import WorkerDetail, queues_of
from holdfast.errors import Refused
from holdfast.text import age, counted, duration, short_clock, span

# `holdfast workers show` and `stack`: what single workers run.

_SHOWN: Final = 50
_LONGEST_NUMBER: Final = 20
_FACTS: Final = ("host", "pid", "pool", "version")

NAME: Final = click.argument("name", shell_complete=names_of("workers"))


@examples("holdfast workers show mail-host-7-0", "holdfast workers show mail-host-7 --watch")
@click.command()
@NAME
@watch_option
@store_options
@json_option
def show(name: str, watch: float | None, place: StorePlace, as_json: bool) -> None:
    """Show a worker, and the job in each of its slots.

    NAME is the name of a worker, or the --name of a worker command, which stands for all its children. Exit code 1 if there is no
    such worker. JSON: a list as that of `list`; each also has `holds`, with `jid`, `klass`, `queue`, `since`, `expires` (the end of
    the lease) and `stalled`.
    """
    with place.console() as console:
        repeat(watch, lambda: _show(console, name, as_json))


def _show(console: Console, name: str, as_json: bool) -> None:
    found = [console.worker(one.name) for one in console.workers_of(name)]
    now = console.now_ms()
    if as_json:
        print_json([{**facts_of(one.facts, now / 1000), "holds": _holds(one)} for one in found])
        return
    for index, one in enumerate(found):
        if index:
            click.echo()
        _print_worker(one, now)


def _holds(one: WorkerDetail) -> list[dict[str, Any]]:
    return [
        {
            "jid": held.jid,
            "klass": one.klasses.get(held.jid, ""),
            "queue": held.queue,
            "since": held.since_ms / 1000,
            "expires": held.expires_ms / 1000,
            "stalled": held.stalled,
        }
        for held in one.holds
    ]


def _print_worker(one: WorkerDetail, now: int) -> None:
    facts = facts_of(one.facts, now / 1000)
    slots = facts["seats"]
    print_facts(
        {
            "worker": one.facts.name,
            **{name: facts[name] for name in _FACTS},
            "queues": ", ".join(facts["queues"]),
            "seen": f"{duration(facts['silent'])} ago"
            + (f": silent since {short_clock(one.facts.seen_ms)}" if facts["is_silent"] else ""),
            "up": "" if facts["up"] is None else duration(facts["up"]),
            "quiet": ("takes no jobs" if one.holds else "drained: takes no jobs and runs none")
            if facts["quiet"]
            else "",
            "stuck": duration(facts["stuck"]) if facts["stuck"] else "",
            "slots": "" if slots is None else f"{len(one.holds):,} of {slots:,} in use",
        }
    )
    if one.holds:
        click.echo()
        columns = ("jid", "klass", "queue", "running for", "lease left")
        print_list(
            columns, [_slot(held, one, now) for held in one.holds[:_SHOWN]], whole=("jid", "lease left")
        )
    if len(one.holds) > _SHOWN:
        click.echo(f"and {counted(len(one.holds) - _SHOWN, 'more job')}; --json shows all")


def _slot(held: HeldJob, one: WorkerDetail, now: int) -> Sequence[object]:
    left = "ended" if held.stalled else span(max(held.expires_ms - now, 0))
    return (
        held.jid,
        one.klasses.get(held.jid, ""),
        held.queue,
        age(held.since_ms, now),
        left,
    )


@examples("holdfast workers stack mail-host-7-0", "holdfast workers stack mail-host-7 --timeout 2s")
@click.command()
@NAME
@click.option(
    "--limit", "-n", type=click.IntRange(1, 512), default=_SHOWN, show_default=True, help="Number of jobs."
)
@click.option(
    "--timeout",
    type=length,
    default=str(STACK_TIMEOUT_S),
    show_default=True,
    metavar="LENGTH",
    help="Time to wait for each reply.",
)
@store_options
@json_option
def stack(name: str, limit: int, timeout: float, place: StorePlace, as_json: bool) -> int:
    """Show the stacks of the running jobs of a worker, longest running first.

    NAME is as in `show`. Exit code 1 if there is no such worker, or if it does not report one of the stacks. JSON: a list of `jid`,
    `worker`, `pid`, `stack`, `note` and `problem` (why there is none, or "").
    """
    with place.console() as console:
        held = [one for worker in console.workers_of(name) for one in console.held(worker.name)]
        running = sorted((one for one in held if not one.stalled), key=lambda one: one.since_ms)
        found = [_stack(console, one, timeout) for one in running[:limit]]
    if as_json:
        print_json(found)
    else:
        _print_stacks(name, found, len(running))
    return 1 if any(one["problem"] for one in found) else 0


def _stack(console: Console, held: HeldJob, timeout: float) -> dict[str, Any]:
    facts = {"jid": held.jid, "worker": held.worker, "pid": 0, "stack": "", "note": "", "problem": ""}
    try:
        found = console.stack(held.jid, timeout)
    except (Refused, TimeoutError) as error:
        return {**facts, "problem": str(error)}
    return {**facts, "pid": found.pid, "stack": found.stack, "note": found.note}


def _print_stacks(name: str, found: Sequence[dict[str, Any]], count: int) -> None:
    for one in found:
        if one["problem"]:
            echo_text(f"holdfast: {one['problem']}", err=True)
            continue
        echo_text(f"job {one['jid']}, worker {one['worker']}, process {one['pid']}")
        echo_text("\n".join(text for text in (one["note"], one["stack"]) if text))
    if not count:
        echo_text(f"{name} runs no jobs")
    elif count > len(found):
        click.echo(f"and {counted(count - len(found), 'more job')}; --limit shows more", err=True)


def facts_of(worker: WorkerFacts, now: float) -> dict[str, Any]:
    """Return what is known of a worker. Its own report may hold anything; what cannot be read is left out."""
    facts = worker.facts
    started = _whole(facts.get("started"))
    return {
        "name": worker.name,
        "host": facts.get("host", ""),
        "pid": _whole(facts.get("pid")),
        "pool": facts.get("pool", ""),
        "version": facts.get("version", ""),
        "queues": queues_of(worker),
        "busy": _whole(facts.get("busy")),
        "seats": _whole(facts.get("slots")),
        "up": None if started is None else max(0.0, round(now - started / 1000, 3)),
        "silent": max(0.0, round(now - worker.seen_ms / 1000, 3)),
        "is_silent": is_silent(worker, round(1000 * now)),
        "quiet": worker.quiet,
        "stuck": _whole(facts.get("stuck")) or 0,
    }


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < _LONGEST_NUMBER else None


_LOOK: Final = 0.25
"""Seconds between two checks whether workers have finished their jobs."""
MAX_AGE: Final = 30.0  # seconds; a worker sends a heartbeat every ten

_EMPTY: Final = "No workers are known. To start one:\n  holdfast worker --queue QUEUE --import MODULE"
_DROPS: Final = ("pool", "slots", "busy", "up", "pid", "host")
"""Columns that a narrow terminal does not show, the last one first."""
_COLUMNS: Final = ("worker", "host", "pid", "pool", "queues", "busy", "slots", "up", "seen", "quiet", "stuck")


NAMES: Final = click.argument(
    "names", metavar="NAME…", nargs=-1, required=True, shell_complete=names_of("workers")
)


@click.group(cls=OrderedGroup)
def workers() -> None:
    """List, show, check, quiet, drain and resume workers, and show what they run."""


@examples("holdfast workers list", "holdfast workers list --watch 5")
@workers.command("list")
@watch_option
@store_options
@json_option
def list_workers(watch: float | None, place: StorePlace, as_json: bool) -> None:
    """List the workers, most recently seen first. Silent workers no longer send heartbeats."""
    with place.client(must_exist=True) as client:

        def show() -> None:
            now, found = client.store_time(), client.workers.all()
            rows = [facts_of(worker, now) for worker in found]
            if as_json:
                print_json(rows)
            else:
                print_list(
                    _COLUMNS,
                    [_cells(row) for row in rows],
                    whole=("worker", "seen"),
                    optional=("quiet", "stuck"),
                    empty=_EMPTY,
                    drops=_DROPS,
                )

        repeat(watch, show)


@examples("holdfast workers check", "holdfast workers check mail --max-age 60")
@workers.command()
@click.argument("names", metavar="[NAME]…", nargs=-1, shell_complete=names_of("workers"))
@click.option(
    "--host", default="", help="Host of the workers to check [default: this machine, if no NAME is given]."
)
@click.option(
    "--max-age",
    type=FiniteRange(0.1),
    default=MAX_AGE,
    show_default=True,
    metavar="SECONDS",
    help="Maximum time since the last heartbeat of a worker that counts as alive.",
)
@with_place
@wait_option("--wait", "--timeout")
@json_option
def check(names: Sequence[str], host: str, max_age: float, place: StorePlace, as_json: bool) -> int:
    """Check whether workers are alive, for health checks of containers.

    NAME is the name of a worker, or the --name of a worker command, which stands for all its children. Exit code 0 if for
    each NAME (or on the machine) at least one worker sent a heartbeat within --max-age, 1 if not, 3 if the store does not
    respond.
    """
    if not names and not host:
        host = socket.gethostname()
    with place.client() as client:
        now, found = client.store_time(), client.workers.all()
    rows = [facts_of(worker, now) for worker in found if not host or worker.facts.get("host") == host]
    known = {name: [row for row in rows if is_meant(name, row["name"])] for name in names} or {host: rows}
    alive = {name: [row["name"] for row in of if row["silent"] <= max_age] for name, of in known.items()}
    if as_json:
        print_json({"alive": all(alive.values()), "workers": alive})
    else:
        for name, living in alive.items():
            echo_text(_verdict(name, living, known[name], max_age))
    return 0 if all(alive.values()) else 1


@examples("holdfast workers quiet mail-host-7", "holdfast workers quiet mail-host-7-0")
@workers.command()
@NAMES
@store_options
@json_option
def quiet(names: Sequence[str], place: StorePlace, as_json: bool) -> int:
    """Make workers finish their jobs and take no more; `drain` also waits until they have.

    Exit code 1 if one of them is not known. JSON: for each NAME the workers that it stands for.
    """
    with place.console() as console:
        return _report(console.quiet(*names), "is quiet: it takes no more jobs", as_json)


@examples("holdfast workers resume mail-host-7")
@workers.command()
@NAMES
@store_options
@json_option
def resume(names: Sequence[str], place: StorePlace, as_json: bool) -> int:
    """Make quiet workers take jobs again.

    Exit code 1 if one of them is not known. JSON: for each NAME the workers that it stands for.
    """
    with place.console() as console:
        return _report(console.resume_workers(*names), "takes jobs again", as_json)


@examples("holdfast workers drain mail-host-7 --timeout 10m", "holdfast workers drain mail-host-7 && reboot")
@workers.command()
@NAMES
@click.option(
    "--timeout", type=length, metavar="LENGTH", help="Give up after this time, such as 10m [default: never]."
)
@store_options
@json_option
def drain(names: Sequence[str], timeout: float | None, place: StorePlace, as_json: bool) -> int:
    """Make workers quiet, and wait until they have finished their jobs.

    A drained worker takes no jobs until `resume`, and can be stopped without loss of work. Exit code 0 when all are
    drained, 1 if they are not in time, or if one is not known. JSON: `drained` and `left`, the number of jobs of each worker that has some.
    """
    begun = time.monotonic()
    with place.console() as console:
        since = console.now_ms()
        found = console.quiet(*names)
        left = dict.fromkeys(one for meant in found.values() for one in meant)
        if not as_json:
            _report(found, "is quiet: it takes no more jobs", False)
        while left and (timeout is None or time.monotonic() - begun < timeout):
            time.sleep(_LOOK)
            for worker in [one for one in left if console.is_drained(one, since)]:
                del left[worker]
                if not as_json:
                    echo_text(f"{worker} is drained: it takes no jobs and runs none")
        jobs = {one: len(console.held(one)) for one in left}
    if as_json:
        print_json({"drained": not jobs and all(found.values()), "left": jobs})
    for worker, count in () if as_json else jobs.items():
        echo_text(f"holdfast: {worker} is not drained: it holds {counted(count, 'job')}", err=True)
    return 0 if not jobs and all(found.values()) else 1


def _report(found: Mapping[str, Sequence[str]], done: str, as_json: bool) -> int:
    """Print which workers each name stood for, and return the exit code."""
    if as_json:
        print_json({name: list(meant) for name, meant in found.items()})
    for name, meant in found.items():
        for worker in () if as_json else meant:
            echo_text(f"{worker} {done}")
        if not meant:
            echo_text(f"holdfast: no worker {name} is known", err=True)
    return 0 if all(found.values()) else 1


@examples("holdfast workers forget old-host-1-0")
@workers.command()
@NAMES
@store_options
@json_option
def forget(names: Sequence[str], place: StorePlace, as_json: bool) -> int:
    """Delete workers from the list; their jobs continue.

    One that is alive is listed again with its next heartbeat. Exit code 1, without a change, if one of them is not known. JSON:
    `forgotten`, the names.
    """
    with place.console() as console:
        found = [worker.name for worker in console.workers_of(*names)]
        console.forget_workers(*found)
    if as_json:
        print_json({"forgotten": found})
    else:
        echo_text("\n".join(f"forgot {name}" for name in found))
    return 0


def _cells(row: dict[str, Any]) -> Sequence[object]:
    up = "" if row["up"] is None else span(1000 * row["up"])
    seen, quiet = span(1000 * row["silent"]) + " ago", "yes" if row["quiet"] else ""
    silent = f"silent for {span(1000 * row['silent'])}" if row["is_silent"] else ""
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
        silent or seen,
        quiet,
        span(1000 * row["stuck"]) if row["stuck"] else "",
    )


def _verdict(name: str, alive: Sequence[str], known: Sequence[dict[str, Any]], max_age: float) -> str:
    if alive:
        return f"{name}: {len(alive)} alive: {', '.join(alive)}"
    if not known:
        return f"{name}: no worker is known"
    silent = min(row["silent"] for row in known)
    return f"{name}: silent for {duration(silent)}, longer than {duration(max_age)}"


workers.add_command(show)
workers.add_command(stack)
