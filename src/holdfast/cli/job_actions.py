"""`holdfast jobs retry`, `cancel`, `move`, `edit` and the others that change jobs, named by JID or by a filter."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from holdfast.bounds import Priority, limits
from holdfast.cli.bulk import Chosen, choice, report_each
from holdfast.cli.completion import names_of
from holdfast.cli.examples import examples
from holdfast.cli.output import FiniteRange
from holdfast.commands.operations import Action
from holdfast.console.handles import Console
from holdfast.console.plain import stored
from holdfast.errors import JobNotFound, Refused, UsageError
from holdfast.models import JobFacts

_dependents = click.option("--dependents", is_flag=True, help="The jobs that wait for these too.")


@examples(
    "holdfast jobs retry JID",
    "holdfast jobs retry --filter 'state:failed group:mail-ValueError' --dry-run",
    "holdfast jobs retry --filter 'state:failed failed<2h' --rate 50 --yes",
)
@click.command()
@click.option(
    "--queue",
    default="",
    metavar="QUEUE",
    shell_complete=names_of("queues"),
    help="Put them into this queue [default: that of each job].",
)
@choice
def retry(chosen: Chosen, queue: str) -> int:
    """Put failed jobs into their queues again, with all their retries.

    Exit code 1 if one was refused, because it is not failed or does not exist.
    """
    return chosen.apply("retry", queue)


@examples("holdfast jobs cancel JID", "holdfast jobs cancel --filter 'queue:mail tag:spring' --dry-run")
@click.command()
@_dependents
@choice
def cancel(chosen: Chosen, dependents: bool) -> int:
    """Delete jobs that have not ended; one that runs is stopped.

    This cannot be undone: `holdfast jobs export` keeps a copy first. Exit code 1 if one was refused: it is complete or does not
    exist, or others depend on it.
    """
    return chosen.apply("cancel", dependents=dependents)


@examples("holdfast jobs delete JID", "holdfast jobs delete --filter 'state:failed failed>30d'")
@click.command()
@_dependents
@choice
def delete(chosen: Chosen, dependents: bool) -> int:
    """Delete jobs that no worker runs. The same as cancel, which also stops running jobs; here these are refused.

    This cannot be undone: `holdfast jobs export` keeps a copy first. Completed jobs are deleted by age and number (settings
    jobs-history and jobs-history-count). Exit code 1 if one was refused.
    """
    return chosen.apply("delete", dependents=dependents)


@examples("holdfast jobs move slow JID", "holdfast jobs move slow --filter 'queue:mail klass:jobs.report'")
@click.command()
@click.argument("queue", shell_complete=names_of("queues"))
@choice
def move(chosen: Chosen, queue: str) -> int:
    """Move jobs to another queue, where they wait; a worker that runs one loses its lease.

    Exit code 1 if one was refused.
    """
    return chosen.apply("move", queue)


@examples("holdfast jobs expire JID", "holdfast jobs expire --filter worker:host-a-*")
@click.command()
@choice
def expire(chosen: Chosen) -> int:
    """End the leases of running jobs now, so that other workers take them, as if their worker were dead.

    Exit code 1 if one was refused, because it does not run.
    """
    return chosen.apply("expire")


@examples("holdfast jobs fail JID", "holdfast jobs fail --filter 'queue:mail state:stalled'")
@click.command()
@choice
def fail(chosen: Chosen) -> int:
    """Fail jobs whose lease has ended and that no worker took again, in the failure group QUEUE-Lost.

    Jobs that were retried and did not run since go back to the group in which they failed. Exit code 1 if one was refused.
    """
    return chosen.apply("fail")


@examples("holdfast jobs run JID", "holdfast jobs run --filter 'state:scheduled queue:mail'")
@click.command()
@choice
def run(chosen: Chosen) -> int:
    """Let scheduled jobs start now. Exit code 1 if one was refused, because it is not scheduled."""
    return chosen.apply("run")


@examples("holdfast jobs track JID")
@click.command()
@choice
def track(chosen: Chosen) -> int:
    """Track jobs: what happens to them is published, and `holdfast notify` reports it."""
    return chosen.apply("track")


@examples("holdfast jobs untrack --filter is:tracked")
@click.command()
@choice
def untrack(chosen: Chosen) -> int:
    """Track jobs no longer."""
    return chosen.apply("untrack")


@examples(
    'holdfast jobs edit JID --patch \'{"lang": null, "n": 2}\'',
    "holdfast jobs edit JID --editor",
    "holdfast jobs edit --filter 'queue:mail state:waiting' --priority 10",
)
@click.command()
@click.option("--data", metavar="JSON|@FILE|-", help="New data: JSON, a file, or standard input.")
@click.option("--patch", metavar="JSON", help="Change the data by a JSON merge patch: null removes a member.")
@click.option("--editor", is_flag=True, help="Change the data of one job in the editor ($VISUAL or $EDITOR).")
@click.option(
    "--priority", type=click.IntRange(*limits(Priority)), metavar="N", help="Priority; higher runs first."
)
@click.option("--retries", type=click.IntRange(0, 1000), metavar="N", help="How often it may fail.")
@click.option(
    "--delay", type=FiniteRange(0, 3_162_240_000), metavar="SECONDS", help="Start it so much later."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Add a tag; can be repeated.")
@click.option("--untag", "untags", multiple=True, metavar="TAG", help="Remove a tag; can be repeated.")
@choice
def edit(chosen: Chosen, data: str | None, editor: bool, **given: Any) -> int:
    """Change data, priority, retries, delay or tags of jobs.

    Data can be changed while no worker runs the job, a delay while it waits. With --filter, one of these changes at a time,
    and of the data a --patch. Exit code 1 if one was refused, also because its data was changed meanwhile.
    """
    changes = _changes(**given)
    if len(changes) + (data is not None) + editor == 0:
        raise UsageError(
            "nothing to change: give --data, --patch, --editor, --priority, --retries, --delay, --tag or --untag"
        )
    if (data is not None or editor) and (chosen.filter or chosen.dry_run):
        raise UsageError("--data and --editor go with JID…; with --filter or --dry-run give --patch")
    if len(changes) > 1 and (chosen.filter or chosen.dry_run):
        raise UsageError(f"with --filter or --dry-run one change at a time, not {' and '.join(changes)}")
    if editor and (len(chosen.jids) > 1 or data is not None):
        raise UsageError("--editor goes with one JID, and without --data")
    new = None if data is None else _json_of(data)
    with chosen.place.console() as console:
        codes = [_set_data(console, chosen, new)] if data is not None else []
        codes += [_in_editor(console, chosen)] if editor else []
        codes += [_apply(console, chosen, action, value) for action, value in changes.items()]
    return max(codes)


def _apply(console: Console, chosen: Chosen, action: Action, value: str) -> int:
    if action == "data" and chosen.jids and not chosen.dry_run:
        return _set_data(console, chosen, None, patch=value)
    return chosen.apply_in(console, action, value)


def _changes(
    patch: str | None,
    priority: int | None,
    retries: int | None,
    delay: float | None,
    tags: Sequence[str],
    untags: Sequence[str],
) -> dict[Action, str]:
    """Return the values of the actions that the options stand for."""
    for name in (*tags, *untags):
        if "," in name:
            raise UsageError(f"tag {name!r}: expected no comma; repeat the option for several tags")
    given: dict[Action, object] = {
        "data": patch,
        "priority": priority,
        "retries": retries,
        "delay": delay,
        "tag": ",".join(tags) or None,
        "untag": ",".join(untags) or None,
    }
    return {action: str(value) for action, value in given.items() if value is not None}


def _json_of(given: str) -> bytes:
    """Return the JSON that an option gives: itself, `@FILE`, or `-` for standard input. Raises UsageError, OSError."""
    if given == "-":
        text = sys.stdin.buffer.read()
    else:
        text = Path(given[1:]).read_bytes() if given.startswith("@") else given.encode(errors="replace")
    return _checked(text)


def _checked(text: bytes) -> bytes:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the data: expected JSON: {error}") from None
    return text.strip()


def _set_data(
    console: Console, chosen: Chosen, data: object, *, patch: str = "", seen: bytes | None = None
) -> int:
    """Give all chosen jobs these data, or patch those that they have, and report."""
    results: list[tuple[str, bool | Refused]] = []
    for jid in chosen.jids:
        try:
            results.append((jid, console.edit(jid, data, patch=patch, seen=seen)))
        except Refused as refused:
            results.append((jid, refused))
    return report_each("data", results, chosen.as_json)


def _in_editor(console: Console, chosen: Chosen) -> int:
    [jid] = chosen.jids
    facts = getattr(console.job(jid), "facts", None)
    if not isinstance(facts, JobFacts):
        raise JobNotFound(
            f"{jid} is a recurring job: `holdfast recurring edit` changes it", "HF_JOB_NOT_FOUND"
        )
    text = json.dumps(stored(facts.data), indent=2, ensure_ascii=False) + "\n"
    changed = click.edit(text, extension=".json", require_save=False)
    if changed is None or changed == text:
        return report_each("data", [(jid, False)], chosen.as_json)
    return _set_data(console, chosen, _checked(changed.encode(errors="replace")), seen=facts.data)


COMMANDS: Final = (retry, cancel, delete, move, edit, expire, fail, run, track, untrack)
