"""`holdfast jobs show`, `tree`, `log` and `result`: everything about one job."""

import json
import time
from collections.abc import Sequence
from typing import Any, Final

import click

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.output import FiniteRange, echo_text, json_option, print_facts, print_json
from holdfast.cli.tables import Listing, cut_line, echo_wrapped
from holdfast.client.stacks import UNDER_WAY
from holdfast.code.backoff import backoff_text
from holdfast.code.put_options import OPTIONS
from holdfast.commands.job_rows import JobRow
from holdfast.commands.recurring import RecurringFacts
from holdfast.console.handles import Console
from holdfast.console.plain import plain, stored
from holdfast.console.read.job_queries import JobDetail, logged
from holdfast.console.read.job_tree import MAX_DEPTH, TreeJob
from holdfast.errors import JobNotFound
from holdfast.models import HistoryEntry, JobFacts
from holdfast.settings import MAX_BATCH, OWN_THROTTLE
from holdfast.text import brief_ago, counted, duration, moment, one_line

_MOST_LINES: Final = 20
_ENDED: Final = ("complete", "failed")


@examples(
    "holdfast jobs show JID",
    "holdfast jobs show JID --full --json",
)
@click.command()
@click.argument("jid")
@click.option("--full", is_flag=True, help="Show all of the data, the traceback and the history.")
@store_options
@json_option
def show(jid: str, full: bool, place: StorePlace, as_json: bool) -> None:
    """Show a job: its facts, data, attempts, failure, dependencies, history, and why it is running or not.

    Exit code 1 if there is no such job. With --json: `facts`, `attempts`, `explanation`, `dependencies`, `dependents`, `flow`, `returned`;
    times are seconds since the epoch.
    """
    with place.console() as console:
        found = console.job(jid)
        now = console.now_ms()
    if as_json:
        print_json(plain(found))
    elif isinstance(found, RecurringFacts):
        echo_text(f"{jid} is a recurring job; `holdfast recurring show{console.flags} {jid}` shows it.")
    else:
        _show(found, now, full)


def _show(found: JobDetail, now: int, full: bool) -> None:
    print_facts(_facts(found.facts, now) | _flows(found))
    click.echo()
    echo_wrapped(found.explanation.text)
    _text("data", json.dumps(stored(found.facts.data), indent=2, ensure_ascii=False), full)
    if found.facts.failure:
        failure = found.facts.failure
        _text(
            f"failure in group {failure.group}, {moment(failure.when_ms, now)}",
            failure.message,
            full,
            last=True,
        )
    _attempts(found, now)
    for title, rows in (("waits for", found.dependencies), ("is waited for by", found.dependents)):
        _relatives(title, rows)
    _history(found.facts.history, now, full)


def _facts(facts: JobFacts, now: int) -> dict[str, object]:
    # What a job reported last is not how far it got once it is complete.
    progress = facts.progress if facts.state != "complete" else None
    return {
        "jid": facts.jid,
        "state": facts.state,
        "queue": facts.queue,
        "job": facts.klass,
        "worker": facts.worker,
        "progress": f"{progress.fraction:.0%} {progress.note}" if progress else "",
        "priority": facts.priority,
        "retries": f"{facts.remaining:,} of {facts.retries:,} left",
        "attempts": facts.attempts,
        "losses": facts.losses or "",
        "put": moment(facts.created_ms, now),
        "started": moment(facts.popped_ms, now),
        "ended": moment(facts.ended_ms, now),
        "due": moment(facts.due_ms, now),
        "lease ends": moment(facts.expires_ms, now) if facts.state in UNDER_WAY else "",
        "tags": ", ".join(facts.tags),
        "throttles": ", ".join(name for name in facts.throttles if not name.startswith(OWN_THROTTLE)),
        "recurs from": facts.spawned_from,
        "scheduled for": moment(facts.scheduled_for_ms),
        **_options(facts, now),
        "tracked": "yes" if facts.tracked else "",
    }


def _flows(found: JobDetail) -> dict[str, object]:
    place = found.flow
    of_flow = f"{place.flow}, job {place.number + 1:,} of {place.total:,}" if place else ""
    return {"flow": of_flow, "returned flow": found.returned}


def _options(facts: JobFacts, now: int) -> dict[str, str]:
    """Return the options of its put that the job has, by the names that pages give them."""
    return {
        option.label.lower(): _option(name, option.kind, facts.options[option.stored], now)
        for name, option in OPTIONS.items()
        if option.stored in facts.options
    }


def _option(name: str, kind: str, value: str | int, now: int) -> str:
    if name == "expires":
        return moment(int(value), now)
    if kind == "backoff":
        return backoff_text(str(value))
    return duration(int(value) / 1000) if kind == "seconds" else str(value)


def _title(text: str) -> None:
    click.echo()
    echo_text(cut_line(text))


def _text(title: str, text: str, full: bool, last: bool = False) -> None:
    """Print some lines, the first ones, or the last ones, of a long text."""
    _title(title)
    lines = text.rstrip().splitlines()
    if full or len(lines) <= _MOST_LINES:
        shown = lines
    else:
        shown = lines[-_MOST_LINES:] if last else lines[:_MOST_LINES]
    for line in shown:
        echo_text(f"  {line}" if full else cut_line_indented(line))
    if len(shown) < len(lines):
        click.echo(f"  … {counted(len(lines) - len(shown), 'more line')}; --full shows all")


def cut_line_indented(line: str) -> str:
    """Return a line as a part of a text: its indentation stays, and it is cut to the width of the terminal."""
    blanks = len(line) - len(line.lstrip())
    return cut_line(line, "  " + " " * min(blanks, 40))


def _attempts(found: JobDetail, now: int) -> None:
    if not found.attempts:
        return
    _title("attempts")
    listing = Listing(("number", "worker", "started", "took", "outcome", "reason"), ())
    listing.add(
        [
            (
                one.number,
                one.worker,
                brief_ago(one.start_ms, now),
                f"{(one.end_ms - one.start_ms) / 1000:.3f} s" if one.end_ms else "",
                one.outcome or "running",
                " ".join(filter(None, (one.name, one.reason))),
            )
            for one in found.attempts
        ]
    )


def _relatives(title: str, rows: Sequence[JobRow]) -> None:
    if rows:
        _title(title)
        Listing(("jid", "state", "queue", "klass")).add(
            [(row.jid, row.state, row.queue, row.klass) for row in rows]
        )


@examples("holdfast jobs tree JID", "holdfast jobs tree JID --depth 3 --json")
@click.command()
@click.argument("jid")
@click.option(
    "--depth",
    type=click.IntRange(1, MAX_DEPTH),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of steps in each direction.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_BATCH),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of jobs in each direction.",
)
@store_options
@json_option
def tree(jid: str, depth: int, limit: int, place: StorePlace, as_json: bool) -> None:
    """Show what a job waits for, and what waits for it, step by step; of a flow also jobs that have ended.

    Exit code 1 if there is no such job. With --json: `flow`, `waits_for` and `waited_for_by`; each of these is the job, with the next
    ones in `jobs` and the number of those that are not shown in `more`.
    """
    with place.console() as console:
        found = console.job_tree(jid, depth, limit)
    if as_json:
        print_json(plain(found))
        return
    echo_text(cut_line(_tree_line(found.waits_for)))
    if found.flow:
        echo_text(cut_line(f"of flow {one_line(found.flow)}"))
    for title, root in (("waits for", found.waits_for), ("is waited for by", found.waited_for_by)):
        _title(title)
        if root.jobs:
            _branches(root, "")
        else:
            click.echo("no job")


def _branches(job: TreeJob, before: str) -> None:
    """Print the jobs below one. It goes as deep as `--depth`."""
    for one in job.jobs:
        is_last = one is job.jobs[-1] and not job.more
        echo_text(cut_line(_tree_line(one), before + ("└─ " if is_last else "├─ ")))
        inside = before + ("   " if is_last else "│  ")
        _branches(one, inside)
        if one.more and not one.jobs:
            click.echo(f"{inside}└─ … and {one.more:,} more")
    if job.more and job.jobs:
        click.echo(f"{before}└─ … and {job.more:,} more")


def _tree_line(job: TreeJob) -> str:
    words = [job.jid, job.state, job.klass, f"in queue {job.queue}" if job.queue else ""]
    if job.on_failure not in ("", "fail"):
        words.append(f"on_failure={job.on_failure}")
    if job.is_repeated:
        words.append("(see above)")
    return " ".join(one_line(word) for word in words if word)


def _history(history: Sequence[HistoryEntry], now: int, full: bool) -> None:
    _title("history")
    shown = history if full else history[-_MOST_LINES:]
    if len(shown) < len(history):
        click.echo(f"… {counted(len(history) - len(shown), 'earlier line')}; --full shows all")
    for line in shown:
        echo_text(cut_line(_line(line, now)))


def _line(line: HistoryEntry, now: int) -> str:
    known = {name: value for name, value in line.as_dict().items() if name not in ("what", "when", "token")}
    words = [line.refusal] if line.refusal else [f"{name}={value}" for name, value in known.items()]
    return " ".join([moment(line.when_ms), line.what, *words])


@examples("holdfast jobs log JID --follow")
@click.command()
@click.argument("jid")
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the job has ended, or Ctrl-C.")
@click.option("--interval", type=FiniteRange(0.1, 60), default=1.0, show_default=True, metavar="SECONDS",
              help="With --follow: seconds between two reads.")  # fmt: skip
@store_options
@json_option
def log(jid: str, follow: bool, interval: float, place: StorePlace, as_json: bool) -> int:
    """Print the lines that a job logged, and its progress.

    A job keeps the last 100 lines of its reports. With --json: one object with `jid`, `state`, `progress` and `lines`, with
    --follow one for each read with new lines. With --follow, exit code 1 if the job failed or is gone.
    """
    with place.console() as console:
        return _follow(console, jid, follow, interval, as_json)


def _follow(console: Console, jid: str, follow: bool, interval: float, as_json: bool) -> int:
    seen: list[str] = []
    before: object = None
    while True:
        try:
            found = console.job(jid)
        except JobNotFound:
            if not seen and before is None:
                raise
            echo_text(f"{jid} is gone: it was cancelled, or has ended and was deleted", err=True)
            return 1
        if isinstance(found, RecurringFacts):
            raise JobNotFound(f"{jid} is a recurring job, which has no log", "HF_JOB_NOT_FOUND")
        facts = found.facts
        lines = logged(facts)
        now = (facts.state, facts.progress)
        fresh = added(seen, lines)
        if fresh or now != before:
            _print_log(facts, fresh, as_json)
        seen, before = lines, now
        if not follow or facts.state in _ENDED:
            return 1 if follow and facts.state == "failed" else 0
        time.sleep(interval)


def _print_log(facts: JobFacts, lines: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json(
            {"jid": facts.jid, "state": facts.state, "progress": plain(facts.progress), "lines": lines}
        )
        return
    for line in lines:
        echo_text(line)
    progress = facts.progress if facts.state != "complete" else None
    note = f", {progress.fraction:.0%} {progress.note}".rstrip() if progress else ""
    echo_text(f"{facts.state}{note}", err=True)


def added(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return the lines that were added behind `before`, whose first ones may be gone."""
    for at in range(len(before)):
        rest = before[at:]
        if list(now[: len(rest)]) == list(rest):
            return list(now[len(rest) :])
    return list(now)


@examples("holdfast jobs result JID")
@click.command()
@click.argument("jid")
@store_options
@json_option
def result(jid: str, place: StorePlace, as_json: bool) -> int:
    """Print the result of a job as JSON; with --json an object with `jid` and `result`.

    Exit code 1, with the reason, if the job has not ended, has failed or was cancelled, or if its result is no longer kept.
    """
    with place.console() as console:
        outcome = console.outcome(jid)
        flags = console.flags
    if outcome.status == "open":
        echo_text(f"holdfast: job {jid} has not ended; `holdfast jobs why{flags} {jid}` shows why", err=True)
        return 1
    value: Any = outcome.result_of(jid, flags)
    if value is None:
        echo_wrapped(f"holdfast: job {jid} has ended, but has no result, or it is no longer kept", err=True)
        return 1
    print_json({"jid": jid, "result": stored(value)} if as_json else stored(value))
    return 0
