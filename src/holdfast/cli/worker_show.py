"""`holdfast workers show` and `stack`: what single workers run."""

from collections.abc import Sequence
from typing import Any, Final

import click

from holdfast.cli.completion import names_of
from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import length, print_list
from holdfast.cli.output import echo_text, json_option, print_facts, print_json, repeat, watch_option
from holdfast.client.stacks import PATIENCE
from holdfast.commands.workers import HeldJob, WorkerFacts
from holdfast.console.handles import Console
from holdfast.console.health.attention import is_silent
from holdfast.console.read.queries import WorkerDetail, queues_of
from holdfast.errors import Refused
from holdfast.text import age, counted, duration, short_clock, span

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
def show(name: str, watch: float | None, place: Place, as_json: bool) -> None:
    """Show a worker, and what each of its slots runs since when.

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
            "slots": "" if slots is None else f"{len(one.holds)} of {slots} in use",
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
    default=str(PATIENCE),
    show_default=True,
    metavar="LENGTH",
    help="Time to wait for each reply.",
)
@store_options
@json_option
def stack(name: str, limit: int, timeout: float, place: Place, as_json: bool) -> int:
    """Show the stacks of the running jobs of a worker, the one that runs longest first.

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
        echo_text(f"{name} runs nothing")
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
