"""`holdfast jobs`: find, show and change jobs."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from shlex import quote
from typing import IO, Any, Final

import click
import msgspec

from holdfast.bounds import Priority, limits
from holdfast.cli.bulk import Chosen, choice, report_each
from holdfast.cli.completion import names_of
from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.groups import OrderedGroup
from holdfast.cli.job_show import log, result, show, tree
from holdfast.cli.output import (
    Advance,
    FiniteRange,
    echo_text,
    json_option,
    print_json,
    progress,
    repeat,
    watch_option,
)
from holdfast.cli.tables import Listing, echo_wrapped, new_line, print_findings
from holdfast.client.stacks import STACK_TIMEOUT_S
from holdfast.commands.job_rows import JobRow
from holdfast.commands.operations import Action
from holdfast.console.filters import parse
from holdfast.console.handles import Console
from holdfast.console.plain import plain, stored
from holdfast.console.search.search import SearchPage
from holdfast.console.transfer import INFORMATION, Import, JobLine, job_line
from holdfast.errors import HoldfastError, JobNotFound, Refused, StoreFull, UsageError
from holdfast.models import JobFacts
from holdfast.settings import MAX_BATCH
from holdfast.text import age, brief_ago, counted, listed, one_line, printable_json

# `holdfast jobs list`: find jobs by a filter.

FIELDS: Final = (*(name.removesuffix("_ms") for name in JobRow.__struct_fields__), "age")
_USUAL: Final = ("jid", "state", "queue", "klass", "age")
_FAILED: Final = ("jid", "queue", "klass", "group", "failed")
_TIMES: Final = {name.removesuffix("_ms"): name for name in JobRow.__struct_fields__ if name.endswith("_ms")}
_WANTS: Final = {"data": "d", "tags": "t", "group": "e", "message": "e", "failed": "e"}
_LIMIT: Final = 25


def _columns(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    for name in names:
        if name not in FIELDS:
            raise click.BadParameter(
                f"there is no column {one_line(name)!r}: expected some of {', '.join(FIELDS)}"
            )
    return names


@examples(
    "holdfast jobs list 'state:failed queue:mail-* created<2h'",
    "holdfast jobs list data.order.id=17 --all",
    "holdfast jobs list state:running --columns jid,worker,popped --watch",
)
@click.command("list")
@click.argument("words", metavar="[FILTER]", nargs=-1)
@click.option(
    "--limit", type=click.IntRange(1, MAX_BATCH), metavar="N", help=f"Number of jobs [default: {_LIMIT}]."
)
@click.option("--after", default="", metavar="CURSOR", help="Continue where a previous list ended.")
@click.option("--all", "is_all", is_flag=True, help="Search all jobs, and show every match.")
@click.option(
    "--columns",
    callback=_columns,
    metavar="NAMES",
    help="Columns to show, separated by commas: jid,state,tags.",
)
@watch_option
@store_options
@json_option
def list_jobs(
    words: Sequence[str],
    limit: int | None,
    after: str,
    is_all: bool,
    columns: tuple[str, ...],
    watch: float | None,
    place: StorePlace,
    as_json: bool,
) -> None:
    """List the jobs that FILTER matches, or all.

    The search language is described in the guide; put FILTER in quotes: 'state:failed queue:mail-* created<2h'. One call
    searches up to 5,000 jobs; the last line (on standard error) states how many it searched and how to continue.
    With --json: `jobs`, `looked`, `candidates`, `index` and `cursor` ("" at the end); times are seconds since the epoch.
    """
    if is_all and (after or watch):
        raise UsageError("--all searches all jobs, and cannot be used with --after or --watch")
    text = " ".join(words)
    shown = columns or (_FAILED if parse(text).required("state") == ("failed",) else _USUAL)
    wants = "dte" if as_json else "".join(sorted({_WANTS[name] for name in shown if name in _WANTS}))
    with place.console() as console:

        def show() -> None:
            pages = (
                _all(console, text, limit, wants)
                if is_all
                else iter([console.jobs(text, after=after, limit=limit or _LIMIT, wants=wants)])
            )
            if as_json:
                _print_json(list(pages))
            else:
                _print_text(console, pages, shown, text)

        repeat(watch, show)


def _all(console: Console, text: str, limit: int | None, wants: str) -> Iterator[SearchPage]:
    """Yield pages until all jobs were looked at, or `limit` were found."""
    cursor, left = "", limit or sys.maxsize
    with progress("looking", 0, is_alone=False) as step:
        while True:
            page = console.jobs(text, after=cursor, limit=min(left, MAX_BATCH), wants=wants)
            step(page.looked, page.candidates)
            yield page
            cursor, left = page.cursor, left - len(page.jobs)
            if not cursor or not left:
                return


def _print_json(pages: Sequence[SearchPage]) -> None:
    last = pages[-1]
    print_json(
        {
            "jobs": [plain(row) for page in pages for row in page.jobs],
            "looked": sum(page.looked for page in pages),
            "candidates": max(page.candidates for page in pages),
            "index": last.index,
            "cursor": last.cursor,
        }
    )


def _print_text(console: Console, pages: Iterator[SearchPage], columns: Sequence[str], text: str) -> None:
    now = console.now_ms()
    listing = Listing(columns)
    found = looked = 0
    first = next(pages)
    last = first
    for last in chain([first], pages):
        listing.add([[cell(row, name, now) for name in columns] for row in last.jobs])
        found, looked = found + len(last.jobs), looked + last.looked
    effort = f"{counted(found, 'job')} found{' so far' if last.cursor else ''}; searched {looked:,} of {max(first.candidates, looked):,}: {last.index}"
    echo_text(effort, err=True)
    if last.cursor:
        words = f" {quote(text)}" if text else ""
        echo_text(
            f"To continue:{new_line(sys.stderr)}holdfast jobs list{console.flags}{words} --after {quote(last.cursor)}",
            err=True,
        )


def cell(row: JobRow, name: str, now_ms: int) -> object:
    """Return what a column shows of a job."""
    if name == "age":
        return age(row.queued_ms or row.created_ms, now_ms)
    if name in _TIMES:
        return brief_ago(getattr(row, _TIMES[name]), now_ms)
    value: Any = getattr(row, name)
    if name == "data":
        return json.dumps(stored(value), ensure_ascii=False) if value else ""
    if name == "message":
        return (value.strip().splitlines() or [""])[-1]
    if name == "tags":
        return ", ".join(value)
    return ("yes" if value else "") if isinstance(value, bool) else value


# `holdfast jobs retry`, `cancel`, `move`, `edit` and the others that change jobs, named by JID or by a
# filter.

_dependents = click.option("--dependents", is_flag=True, help="Include the jobs that wait for these.")


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
    help="Queue to put them into [default: that of each job].",
)
@choice
def retry(chosen: Chosen, queue: str) -> int:
    """Put failed jobs back into their queues, with all their retries.

    Exit code 1 if one was refused because it has not failed or does not exist.
    """
    return chosen.apply("retry", queue)


@examples("holdfast jobs cancel JID", "holdfast jobs cancel --filter 'queue:mail tag:spring' --dry-run")
@click.command()
@_dependents
@choice
def cancel(chosen: Chosen, dependents: bool) -> int:
    """Delete jobs that have not ended; running ones are stopped.

    This cannot be undone: `holdfast jobs export` keeps a copy first. Exit code 1 if one was refused: it is complete or does not
    exist, or others depend on it.
    """
    return chosen.apply("cancel", dependents=dependents)


@examples("holdfast jobs delete JID", "holdfast jobs delete --filter 'state:failed failed>30d'")
@click.command()
@_dependents
@choice
def delete(chosen: Chosen, dependents: bool) -> int:
    """Delete jobs that are not running. Unlike cancel, running jobs are refused.

    This cannot be undone: `holdfast jobs export` keeps a copy first. Completed jobs are deleted by age and number (settings
    jobs-history and jobs-history-count). Exit code 1 if one was refused.
    """
    return chosen.apply("delete", dependents=dependents)


@examples("holdfast jobs move slow JID", "holdfast jobs move slow --filter 'queue:mail klass:jobs.report'")
@click.command()
@click.argument("queue", shell_complete=names_of("queues"))
@choice
def move(chosen: Chosen, queue: str) -> int:
    """Move jobs to another queue, where they wait; the worker of a running job loses its lease.

    Exit code 1 if one was refused.
    """
    return chosen.apply("move", queue)


@examples("holdfast jobs expire JID", "holdfast jobs expire --filter worker:host-a-*")
@click.command()
@choice
def expire(chosen: Chosen) -> int:
    """End the leases of running jobs now, so that other workers take them, as if their worker had died.

    Exit code 1 if one was refused because it is not running.
    """
    return chosen.apply("expire")


@examples("holdfast jobs fail JID", "holdfast jobs fail --filter 'queue:mail state:stalled'")
@click.command()
@choice
def fail(chosen: Chosen) -> int:
    """Fail jobs whose lease has ended and that no worker took again, in the failure group QUEUE-Lost.

    Jobs that were retried and have not run since return to the group in which they failed. Exit code 1 if one was refused.
    """
    return chosen.apply("fail")


@examples("holdfast jobs run JID", "holdfast jobs run --filter 'state:scheduled queue:mail'")
@click.command()
@choice
def run(chosen: Chosen) -> int:
    """Make scheduled jobs ready now. Exit code 1 if one was refused because it is not scheduled."""
    return chosen.apply("run")


@examples("holdfast jobs track JID")
@click.command()
@choice
def track(chosen: Chosen) -> int:
    """Track jobs: their events are published, and `holdfast notify` sends them."""
    return chosen.apply("track")


@examples("holdfast jobs untrack --filter is:tracked")
@click.command()
@choice
def untrack(chosen: Chosen) -> int:
    """Stop tracking jobs."""
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
@click.option(
    "--retries", type=click.IntRange(0, 1000), metavar="N", help="Number of failed runs that are repeated."
)
@click.option(
    "--delay", type=FiniteRange(0, 3_162_240_000), metavar="SECONDS", help="Delay the start by this time."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Add a tag; can be repeated.")
@click.option("--untag", "untags", multiple=True, metavar="TAG", help="Remove a tag; can be repeated.")
@choice
def edit(chosen: Chosen, data: str | None, editor: bool, **given: Any) -> int:
    """Change data, priority, retries, delay or tags of jobs.

    The data can be changed while the job is not running, the delay while it waits. With --filter, give one change at a
    time, and --patch for the data. Exit code 1 if one was refused, also if its data was changed meanwhile.
    """
    changes = _changes(**given)
    if len(changes) + (data is not None) + editor == 0:
        raise UsageError(
            "nothing to change: give --data, --patch, --editor, --priority, --retries, --delay, --tag or --untag"
        )
    if (data is not None or editor) and (chosen.filter or chosen.dry_run):
        raise UsageError("--data and --editor require JID…; with --filter or --dry-run use --patch")
    if len(changes) > 1 and (chosen.filter or chosen.dry_run):
        raise UsageError(f"with --filter or --dry-run give one change at a time, not {' and '.join(changes)}")
    if editor and (len(chosen.jids) > 1 or data is not None):
        raise UsageError("--editor requires exactly one JID, and cannot be used with --data")
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


# `holdfast jobs export` and `import`: jobs as lines of JSON.

_PAGE: Final = 256
_SHOWN: Final = 20
"""How many refusals are printed."""


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@examples(
    "holdfast jobs export state:failed queue:mail > failed.jsonl",
    "holdfast jobs export tag:vip | ssh other holdfast jobs import - --keep-jids",
)
@click.command(
    "export",
    help=f"""Print the jobs that FILTER matches, one line of JSON each, with everything needed to put them again.

    {_code(name for name in JobLine.__struct_fields__ if name not in INFORMATION)}; and for information
    {_code(INFORMATION)}. Defaults are left out. Times are in seconds, dates since the epoch. Recurring jobs are not
    exported. Jobs of a flow that are ready or have ended are exported as jobs of their own. Exit code 1 if a job cannot be exported: its data
    is not JSON, or it waits for other jobs of its flow.""",
)
@click.argument("words", metavar="[FILTER]", nargs=-1)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Maximum number of jobs [default: all].")
@store_options
def export_jobs(words: Sequence[str], limit: int | None, place: StorePlace) -> int:
    """Print jobs as lines of JSON."""
    with place.console() as console:
        done, unreadable, in_flow = _export(console, " ".join(words), limit or sys.maxsize)
    for jid in unreadable:
        echo_text(f"holdfast: {jid}: the data is not JSON, so it cannot be exported", err=True)
    if in_flow:
        waiting = counted(len(in_flow), "job waits", "jobs wait")
        echo_wrapped(
            f"holdfast: {waiting} for other jobs of a flow and cannot be exported, because an import could not pass results to "
            f"them: {listed(in_flow, _SHOWN)}. Put the flow again, or export them when they are ready.",
            err=True,
        )
    echo_text(f"{counted(done, 'job')} exported", err=True)
    return 1 if unreadable or in_flow else 0


def _export(console: Console, text: str, limit: int) -> tuple[int, list[str], list[str]]:
    cursor, done, is_shown = "", 0, sys.stdout.isatty()
    unreadable, in_flow = list[str](), list[str]()
    with progress("exporting", 0, is_alone=False) as step:
        while True:
            page = console.export(text, after=cursor, limit=min(_PAGE, limit - done))
            for line in page.lines:
                json = line.encode().decode()
                click.echo(printable_json(json) if is_shown else json)  # a file keeps the data byte for byte
            step(page.looked, page.candidates)
            done, cursor = done + len(page.lines), page.cursor
            unreadable += page.unreadable
            in_flow += page.in_flow
            if not cursor or done >= limit:
                return done, unreadable, in_flow


@examples("holdfast jobs import failed.jsonl", "zcat jobs.jsonl.gz | holdfast jobs import - --keep-jids")
@click.command("import")
@click.argument("file", type=click.File("rb"), metavar="FILE|-")
@click.option(
    "--keep-jids",
    is_flag=True,
    help="Keep the jids; a job that exists with other content is refused.",
)
@store_options
@json_option
def import_jobs(file: IO[bytes], keep_jids: bool, place: StorePlace, as_json: bool) -> int:
    """Put the jobs of an export, or any lines of JSON with `queue` and `klass`.

    Jobs get new jids, and dependencies among them are kept; with --keep-jids an import that was interrupted can be repeated. Each
    job waits, whatever its state was, until `due` if that is in the future. With --json: `put` and `refused` (the first 1,000, with
    `line` and `reason`) and `refused_count`. Exit code 1 if a line was refused.
    """
    with place.console(must_exist=False) as console:
        work = _Work(console, Import(keep_jids))
        try:
            work.run(file)
        except KeyboardInterrupt:
            echo_text(f"interrupted: {counted(work.put, 'job')} put", err=True)
            return 130
    if as_json:
        print_json({"put": work.put, "refused_count": work.refused, "refused": work.reasons})
    else:
        click.echo(f"{counted(work.put, 'job')} put, {work.refused:,} refused")
    return 1 if work.refused else 0


_MOST_REASONS: Final = 1000


class _Work:
    """An import under way."""

    def __init__(self, console: Console, lines: Import) -> None:
        self._console, self._lines = console, lines
        self._numbers: dict[str, int] = {}
        self.put = self.refused = 0
        self.reasons: list[dict[str, object]] = []

    def run(self, file: IO[bytes]) -> None:
        """Put all lines, those that depend on others last."""
        size = os.fstat(file.fileno()).st_size if file.seekable() else 0
        with progress("importing", size) as step:
            for batch in _batches(self._ready(file, step)):
                self._put(batch)
        try:
            for level in self._lines.later():
                for batch in _batches(level):
                    self._put(batch)
        except UsageError as error:
            self._refuse(0, error)

    def _ready(self, file: IO[bytes], step: Advance) -> Iterator[JobLine]:
        for number, text in zip(count(1), file, strict=False):
            step(len(text))
            if not text.strip():
                continue
            try:
                line = self._lines.take(job_line(text))
            except UsageError as error:
                self._refuse(number, error)
                continue
            if line is not None:
                self._numbers[line.jid] = number
                yield line

    def _put(self, batch: Sequence[JobLine]) -> None:
        for line, outcome in zip(batch, self._console.put_lines(batch), strict=True):
            number = self._numbers.pop(line.jid, 0)
            if isinstance(outcome, StoreFull):
                raise outcome
            if isinstance(outcome, HoldfastError):
                self._refuse(number, outcome, line.jid)
            else:
                self.put += 1

    def _refuse(self, number: int, error: HoldfastError, jid: str = "") -> None:
        self.refused += 1
        if len(self.reasons) < _MOST_REASONS:
            self.reasons.append({"line": number or None, "jid": jid or None, "reason": str(error)})
        if self.refused <= _SHOWN:
            where = f"line {number}" if number else jid or "the file"
            echo_text(f"holdfast: {where}: {error}", err=True)
        elif self.refused == _SHOWN + 1:
            echo_text("holdfast: … more lines were refused; --json prints the first 1,000", err=True)


def _batches(lines: Iterable[JobLine]) -> Iterator[list[JobLine]]:
    batch: list[JobLine] = []
    for line in lines:
        batch.append(line)
        if len(batch) == _PAGE:
            yield batch
            batch = []
    if batch:
        yield batch


@click.group(cls=OrderedGroup)
def jobs() -> None:
    """Find, show and change jobs."""


@examples("holdfast jobs stack JID")
@click.command()
@click.argument("jid")
@click.option(
    "--timeout",
    type=FiniteRange(0.01, 3600),
    default=STACK_TIMEOUT_S,
    show_default=True,
    help="Seconds to wait for the worker.",
)
@store_options
@json_option
def stack(jid: str, timeout: float, place: StorePlace, as_json: bool) -> int:
    """Show the stack of a running job, innermost frame last.

    Its worker reports the stack, also while code blocks its process. Exit code 1 if there is no such job, if it is not
    running, or if its worker does not respond; 3 if the store does not respond.
    """
    with place.client(must_exist=True) as client:
        try:
            found = client.jobs.stack(jid, timeout)
        except TimeoutError as error:
            raise HoldfastError(str(error)) from error
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        echo_text(f"job {found.jid}, worker {found.worker}, process {found.pid}")
        if found.note:
            echo_text(found.note)
        echo_text(found.stack)
    return 0


@examples("holdfast jobs why JID")
@click.command()
@click.argument("jid")
@store_options
@json_option
def why(jid: str, place: StorePlace, as_json: bool) -> int:
    """Show why a job is running or not: the checks, what blocks it, and how to unblock it.

    Exit code 1 if there is no such job, 3 if the store does not respond.
    """
    with place.client(must_exist=True) as client:
        found = client.jobs.explain(jid)
    if as_json:
        print_json(found.as_dict())
    else:
        echo_wrapped(found.text)
        rows = [(check.check, check.verdict, check.text, check.fix) for check in found.checks]
        print_findings(("check", "verdict", "finding", "remedy"), rows)
        for line in found.facts.get("log", ()):
            echo_text(line)
    return 0 if found.exists else 1


for _command in (list_jobs, show, tree, why, stack, log, result, *COMMANDS, export_jobs, import_jobs):
    jobs.add_command(_command)
