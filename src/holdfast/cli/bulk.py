"""Change jobs, named one by one or by a filter: show what it would do, ask, do it, and report."""

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar, cast

import click

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.output import FiniteRange, confirm, echo_text, json_option, print_json, progress, yes_option
from holdfast.cli.tables import Listing, cut_line, echo_wrapped, new_line
from holdfast.commands.operations import Action
from holdfast.console.handles import Console
from holdfast.console.operations.dry_run import DryRun
from holdfast.console.operations.operations import Operation, RunningOperation
from holdfast.console.operations.spec import APPLIES, Spec
from holdfast.console.plain import plain
from holdfast.console.search.filter_values import Exact
from holdfast.errors import HoldfastError, Refused, TransportError, UsageError
from holdfast.text import counted, duration, either

F = TypeVar("F", bound=Callable[..., Any])

MANY: Final = 1000
"""More jobs than this are cancelled only after the number was typed."""
DONE: Final = {
    "retry": "retried", "fail": "marked as failed", "move": "moved", "cancel": "cancelled", "delete": "deleted",
    "expire": "expired", "run": "started", "delay": "delayed", "priority": "changed", "retries": "changed",
    "data": "changed", "tag": "tagged", "untag": "untagged", "track": "tracked", "untrack": "untracked", "move-back": "moved back",
}  # fmt: skip
_VERB: Final = {
    "run": "start",
    "data": "edit",
    "priority": "edit",
    "retries": "edit",
}
_FINAL: Final = ("cancel", "delete")
_SHOWN: Final = 10


def run_bulk(console: Console, spec: Spec, *, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Change all jobs that a filter matches, and return the exit code. Without `yes` it is tried dry first, and asks."""
    if dry_run or not yes:
        found = try_dry(console, spec)
        if dry_run and as_json:
            print_json(plain(found))
            return 0
        show_dry_run(spec, found, err=as_json)
        if dry_run or not found.matched:
            return 0
        ask(spec, found)
    return report(console, console.start_operation(spec), as_json)


def try_dry(console: Console, spec: Spec) -> DryRun:
    """Count the jobs that match, with a bar on a terminal."""
    seen = 0
    with progress("looking", 0) as step:

        def note(found: DryRun) -> None:
            nonlocal seen
            step(found.looked - seen, found.candidates)
            seen = found.looked

        return console.dry_run(spec, on_page=note)


def show_dry_run(spec: Spec, found: DryRun, err: bool = False) -> None:
    """Print what an operation would change, and what it leaves out."""

    def echo(text: str) -> None:
        click.echo(cut_line(text), err=err)

    echo(f"{counted(found.matched, 'job')} to {_verb(spec)} ({found.index}; searched {found.looked:,})")
    if found.refused:
        echo(f"{counted(found.refused, 'job')} of these will be refused because of their state")
    for name, counts in (("by state", found.by_state), ("by queue", found.by_queue)):
        if counts:
            shown = [f"{key} {count:,}" for key, count in counts.most_common(_SHOWN)]
            echo(f"{name}: {', '.join(shown)}{', …' if len(counts) > _SHOWN else ''}")
    if applies := APPLIES.get(spec.action):
        echo_wrapped(
            f"Only jobs that are {either(applies)} can be {DONE[spec.action]}; others are not changed.",
            err=err,
        )
    if not err and found.examples:
        listing = Listing(("jid", "state", "queue", "klass"))
        listing.add([(row.jid, row.state, row.queue, row.klass) for row in found.examples])
        if found.matched > len(found.examples):
            echo(f"… and {counted(found.matched - len(found.examples), 'more job')}")


def _verb(spec: Spec) -> str:
    return _VERB.get(spec.action, spec.action)


def ask(spec: Spec, found: DryRun) -> None:
    """Ask on a terminal whether to do it. Raises HoldfastError if the user declines, UsageError without a terminal."""
    question = f"{_verb(spec).capitalize()} {counted(found.matched, 'job')}?"
    if spec.action not in _FINAL or found.matched <= MANY:
        confirm(question, False)
        return
    if not sys.stdin.isatty():
        confirm(question, False)
    typed = click.prompt(
        f"{question} This cannot be undone. Type the number of jobs", default="", show_default=False
    )
    if typed.replace(",", "").strip() != str(found.matched):
        raise HoldfastError("nothing was changed: that is not the number of jobs")


def report(console: Console, running: RunningOperation, as_json: bool) -> int:
    """Run an operation to its end, print what it did, and return the exit code."""
    begun = console.now_ms()
    try:
        done = _run(console, running)
    except KeyboardInterrupt:
        console.stop_operation(running.id)
        done = console.operation(running.id)
        _print_operation(console, done, as_json, 0)
        return 130
    except TransportError:
        echo_text(f"To continue: holdfast operations resume{console.flags} {running.id}", err=True)
        raise
    _print_operation(console, done, as_json, console.now_ms() - begun)
    return 0 if done.state == "done" and not done.refused else 1


def _run(console: Console, running: RunningOperation) -> Operation:
    seen = 0
    with progress(_verb(running.spec), running.spec.candidates) as step:

        def note(now: RunningOperation) -> None:
            nonlocal seen
            step(now.looked - seen)
            seen = now.looked

        return console.run_operation(running, note)


def _print_operation(console: Console, done: Operation, as_json: bool, took_ms: int) -> None:
    if as_json:
        print_json(plain(done))
        return
    took = f" in {duration(round(took_ms / 1000, 1))}" if took_ms else ""
    counts = f"{counted(done.changed, 'job')} {DONE[done.spec.action]}, {done.same:,} unchanged, {done.refused:,} refused"
    click.echo(f"{counts}{took}{new_line(sys.stdout)}(operation {done.id})")
    print_refusals(done.refusals, done.refused)
    for line in what_next(done, console.flags):
        echo_text(line)


def print_refusals(refusals: Sequence[tuple[str, str]], count: int) -> None:
    """Print the first refusals with their reasons."""
    if refusals:
        Listing(("jid", "refused because"), wraps=True).add(refusals[:_SHOWN])
    if count > min(len(refusals), _SHOWN):
        click.echo(f"… and {counted(count - min(len(refusals), _SHOWN), 'more refusal')}")


def what_next(done: Operation, flags: str) -> list[str]:
    """Return how to continue an operation, and how to undo it."""
    lines, new = list[str](), new_line(sys.stdout)
    if done.state == "running" and not done.is_orphaned:
        lines.append(f"It is run by {done.runner}. To stop it:{new}holdfast operations stop{flags} {done.id}")
    elif done.state in ("running", "stopped"):
        what = "It was stopped" if done.state == "stopped" else f"{done.runner}, which ran it, is gone"
        lines.append(f"{what}. To continue:{new}holdfast operations resume{flags} {done.id}")
    if done.undo_until_ms:
        lines.append(f"To undo it within an hour:{new}holdfast operations undo{flags} {done.id}")
    return lines


Results = Sequence[tuple[str, bool | Refused]]


def report_each(action: Action, results: Results, as_json: bool) -> int:
    """Print the results for jobs that were named one by one, and return the exit code."""
    refused = [(jid, one) for jid, one in results if isinstance(one, Refused)]
    if as_json:
        print_json(
            {
                "changed": [jid for jid, one in results if one is True],
                "same": [jid for jid, one in results if one is False],
                "refused": [{"jid": jid, "code": one.code, "reason": one.detail} for jid, one in refused],
            }
        )
    else:
        for jid, one in results:
            if isinstance(one, Refused):
                echo_text(f"holdfast: {_reason(jid, one)}", err=True)
            else:
                echo_text(f"{jid} {DONE[action] if one else 'unchanged'}")
    return 1 if refused else 0


def _reason(jid: str, refused: Refused) -> str:
    return refused.detail if jid in refused.detail else f"{jid}: {refused.detail}"


class Chosen:
    """The jobs that a command changes, by its arguments and options, and the change."""

    def __init__(
        self,
        jids: Sequence[str],
        filter: str | None,
        place: StorePlace,
        rate: float | None,
        dry_run: bool,
        yes: bool,
        as_json: bool,
    ) -> None:
        if bool(jids) == (filter is not None):
            raise UsageError("name jobs by JID or by --filter FILTER" + (", not both" if jids else ""))
        if jids and rate:
            raise UsageError("--rate requires --filter")
        self.jids, self.filter, self.place = jids, filter or "", place
        self.rate, self.dry_run, self.yes, self.as_json = rate or 0.0, dry_run, yes, as_json

    def apply(self, action: Action, value: str = "", *, dependents: bool = False) -> int:
        """Change the chosen jobs, and return the exit code."""
        with self.place.console() as console:
            return self.apply_in(console, action, value, dependents)

    def apply_in(self, console: Console, action: Action, value: str = "", dependents: bool = False) -> int:
        """Change the chosen jobs through an open console."""
        if self.jids and not self.dry_run:
            results = console.act(action, *self.jids, value=value, dependents=dependents)
            return report_each(action, results, self.as_json)
        filter = f"jid:{','.join(map(quoted, self.jids))}" if self.jids else self.filter
        spec = Spec(action=action, filter=filter, value=value, rate=self.rate, dependents=dependents)
        return run_bulk(console, spec, yes=self.yes, dry_run=self.dry_run, as_json=self.as_json)


def quoted(name: str) -> str:
    """Return a name as a value of a filter, whatever letters it has."""
    return str(Exact(name))


_OPTIONS: Final = (
    click.argument("jids", metavar="[JID]…", nargs=-1),
    click.option(
        "--filter", metavar="FILTER", help="Change all jobs that this filter matches, after a dry run."
    ),
    click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing."),
    click.option(
        "--rate",
        type=FiniteRange(0.0, 1_000_000, min_open=True),
        metavar="N",
        help="With --filter: change at most N jobs a second [default: as many as possible].",
    ),
    yes_option,
    store_options,
    json_option,
)


def choice(command: F) -> F:
    """Give a command JID… and the options that choose jobs, passed on together as `chosen`."""

    @wraps(command)
    def choosing(*args: Any, **options: Any) -> Any:
        names = ("jids", "filter", "place", "rate", "dry_run", "yes", "as_json")
        given = {name: options.pop(name) for name in names}
        return command(*args, chosen=Chosen(**given), **options)

    for option in reversed(_OPTIONS):
        choosing = option(choosing)
    return cast("F", choosing)
