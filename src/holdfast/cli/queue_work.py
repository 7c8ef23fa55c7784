"""`holdfast queues purge` and `drain`: cancel the jobs of a queue, or wait until it has no work left."""

import time
from typing import Final

import click

from holdfast.cli.bulk import run_bulk
from holdfast.cli.completion import names_of
from holdfast.cli.connection import Place, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import length
from holdfast.cli.output import echo_text, json_option, print_json, progress, yes_option
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.console.search.filter_values import Exact
from holdfast.models import Counts
from holdfast.text import duration

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
    help=f"States, with commas between: {', '.join(STATES)}.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be cancelled.")
@yes_option
@store_options
@json_option
def purge(name: str, state: str, dry_run: bool, yes: bool, place: Place, as_json: bool) -> int:
    """Cancel all jobs of a queue that are in some states. It shows what it would cancel, and asks.

    It works in pieces, as one operation: `holdfast operations` shows it and continues one that was stopped. Exit code 1 if there
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
def drain(name: str, timeout: float | None, place: Place, as_json: bool) -> int:
    """Wait until no job of a queue waits, runs, is stalled or throttled.

    Puts go on, so stop what puts jobs first. Scheduled and depending jobs are not waited for until they are ready. Exit code 0 when
    it is empty, 1 if it is not by then or not known. JSON: `queue`, `drained`, `left` by state, `seconds`.
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
