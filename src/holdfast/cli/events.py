"""`holdfast events`: follow what happens in a namespace."""

import queue
import re
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from time import monotonic, time
from typing import Any, Final, NamedTuple, TypeVar

import click
import msgspec

from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.output import FiniteRange, echo_text, json_option, print_json
from holdfast.client.events import EVENTS
from holdfast.client.listener import InThread, Listener, Message
from holdfast.client.sync import Client
from holdfast.commands.admin import Watch
from holdfast.commands.jobs import JobGet
from holdfast.commands.queues import CountQueues
from holdfast.errors import HoldfastError, StoreUnsupported, TransportError
from holdfast.models import Counts, JobFacts
from holdfast.text import counted, one_line
from holdfast.wire.exchange import exchange
from holdfast.wire.outage import UNAVAILABLE
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard

# What happens in a namespace, as one line for each change: of jobs, queues, workers, failures, settings.
# The store publishes names of what changed while someone watches (`Watch`), and the events of tracked jobs
# always. Both go to those who listen at that moment; what a change was is looked up afterwards, so it shows
# the state a moment later.

CHANGED: Final = "changed"
WATCHED_FOR: Final = 60.0
"""Seconds for which one call lets the store publish changes."""
_A_CALL, _MOST_CALLS = 64, 8
_STATES: Final = ("waiting", "running", "stalled", "throttled", "scheduled", "depends", "failed")


class Change(NamedTuple):
    """Something that changed: a job, a queue or another kind of thing, by name; `event` is that of a tracked job."""

    event: str
    kind: str
    name: str


class Wanted(NamedTuple):
    """Which changes are wanted: those of some queues (names, `*` stands for any text) or jobs; all if both are empty."""

    queues: Sequence[str] = ()
    jids: Sequence[str] = ()

    def has(self, change: Change) -> bool:
        """Return whether a change may be wanted; the queue of a job is not known yet."""
        if self.jids:
            return change.kind == "job" and change.name in self.jids
        if self.queues:
            return change.kind == "job" or (change.kind == "queue" and self.has_queue(change.name))
        return True

    def has_queue(self, queue: str) -> bool:
        """Return whether a queue is wanted."""
        return not self.queues or any(_matches(pattern, queue) for pattern in self.queues)


def _matches(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


class EventLine(msgspec.Struct, frozen=True):
    """A change, when it was received (epoch seconds), and the job or queue as it was a moment later, if it is known."""

    when: float
    event: str
    kind: str
    name: str
    job: JobFacts | None = None
    counts: Counts | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, with those of the job or queue; empty ones are left out."""
        found: dict[str, Any] = {"when": self.when, "event": self.event, "kind": self.kind, "name": self.name}
        if self.job is not None:
            found |= {name: getattr(self.job, name) for name in ("queue", "klass", "state", "worker")}
        if self.counts is not None:
            found |= {state: getattr(self.counts, state) for state in _STATES}
        return {name: value for name, value in found.items() if value != ""}

    @property
    def text(self) -> str:
        """Return time, name, and what is known, on one line."""
        when = datetime.fromtimestamp(self.when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return one_line(f"{when} {self.kind} {self.name} {self._state}")

    @property
    def _state(self) -> str:
        event = "" if self.event == CHANGED else f"{self.event}: "
        if self.job is not None:
            worker = f", worker {self.job.worker}" if self.job.worker else ""
            return f"{event}{self.job.state} in queue {self.job.queue}{worker} ({self.job.klass})"
        if self.counts is not None:
            counts = {state: getattr(self.counts, state) for state in _STATES}
            return ", ".join(f"{count:,} {state}" for state, count in counts.items() if count) or "empty"
        return self.event


def channels_of(shard: Shard, only_tracked: bool) -> dict[str, str]:
    """Return the channels to listen to, each with the event that its messages stand for."""
    tracked = {shard.event_channel(event): event for event in EVENTS}
    return tracked if only_tracked else {**tracked, shard.event_channel("c"): CHANGED}


def change_of(event: str, text: str) -> Change:
    """Return the change that a message on a channel of `event` stands for."""
    if event != CHANGED:
        return Change(event, "job", text)
    kind, _, name = text.partition(":")
    return Change(event, kind, name)


def watch(shard: Shard) -> Plan[float]:
    """Let the store publish changes for a minute from now on. Returns until when. Raises StoreUnsupported without the right."""
    end = yield from exchange(shard, Watch(round(WATCHED_FOR * 1000)))
    return end / 1000


def lines_of(shard: Shard, changes: Sequence[tuple[float, Change]], wanted: Wanted) -> Plan[list[EventLine]]:
    """Return the lines of the wanted changes, each with what is known.

    Several changes of the same thing are one line; an event of a tracked job stands for its changes too.
    At most 512 jobs and as many queues are looked up; the others have no more than their names.
    """
    once = {change: when for when, change in changes if wanted.has(change)}
    for change in list(once):
        if change.event != CHANGED:
            once.pop(Change(CHANGED, "job", change.name), None)
    jobs = yield from _jobs(shard, list(dict.fromkeys(one.name for one in once if one.kind == "job")))
    counts = yield from _counts(shard, [one.name for one in once if one.kind == "queue"])
    lines = [
        EventLine(when, *change, job=jobs.get(change.name) if change.kind == "job" else None,
                  counts=counts.get(change.name) if change.kind == "queue" else None)
        for change, when in once.items()
    ]  # fmt: skip
    return [line for line in lines if line.kind != "job" or not wanted.queues or _in_queue(line, wanted)]


def _in_queue(line: EventLine, wanted: Wanted) -> bool:
    return line.job is not None and wanted.has_queue(line.job.queue)


def _jobs(shard: Shard, jids: Sequence[str]) -> Plan[Mapping[str, JobFacts]]:
    found: dict[str, JobFacts] = {}
    for some in _slices(jids):
        rows = yield from exchange(shard, JobGet(some))
        found |= {facts.jid: facts for facts in rows if facts is not None}
    return found


def _counts(shard: Shard, queues: Sequence[str]) -> Plan[Mapping[str, Counts]]:
    found: dict[str, Counts] = {}
    for some in _slices(queues):
        rows = yield from exchange(shard, CountQueues(some))
        found |= {counts.name: counts for counts in rows}
    return found


def _slices(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[at : at + _A_CALL] for at in range(0, min(len(names), _A_CALL * _MOST_CALLS), _A_CALL)]


T = TypeVar("T")

_MOST_WAITING: Final = 10_000
_TICK: Final = 0.2
"""Seconds for which changes are collected: they are looked up in one call, and repeated ones are one line."""
_RENEWED: Final = WATCHED_FOR / 3


@click.command()
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help="Show events of this queue and its jobs only; * matches any text; may be repeated [default: all].",
)
@click.option(
    "--jid", "jids", multiple=True, help="Show events of this job only; may be repeated [default: all]."
)
@click.option("--tracked", is_flag=True, help="Show events of tracked jobs only [default: off].")
@click.option("-f", "--follow", is_flag=True, help="Follow until INT; the default without --count and --for.")
@click.option("-n", "--count", type=click.IntRange(1), help="End after this number of lines.")
@click.option("--for", "seconds", type=FiniteRange(0.01, 1e6), metavar="SECONDS", help="End after this time.")
@store_options
@json_option
def events(
    queues: Sequence[str],
    jids: Sequence[str],
    tracked: bool,
    follow: bool,
    count: int | None,
    seconds: float | None,
    place: StorePlace,
    as_json: bool,
) -> int:
    """Follow the events of a namespace: print a line for each job, queue, worker or other thing that changes.

    Without --tracked, the store publishes every change while this command runs. A line shows the job or queue as it is
    shortly afterwards; changes of the same thing within 0.2 s are one line, and new jobs are shown by their queue. Events that happen while the store is unavailable
    are lost. Exit code 1 if --for ends before there were --count lines, 3 if the store does not respond.

    \b
    Examples:
      holdfast events --queue 'mail-*'
      holdfast events --jid 01a209e1e71570009ec7d9f7de302c32 --json
      holdfast events --tracked --count 1 --for 30
    """
    if follow and (count or seconds):
        raise click.UsageError("--follow cannot be used with --count or --for")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with place.client(must_exist=True) as client:
        following = Following(client, tracked, Wanted(queues, jids), as_json)
        try:
            following.run(count, monotonic() + seconds if seconds else None)
        except KeyboardInterrupt:
            return 0
    return 1 if count and following.shown < count else 0


class Following:
    """The events of a client, printed as they come."""

    def __init__(self, client: Client, tracked: bool, wanted: Wanted, as_json: bool) -> None:
        self._client = client
        self._channels = channels_of(client.shard, tracked)
        self._wanted = wanted
        self._print: Callable[[EventLine], None] = _print_line_json if as_json else _print_line
        self._watches = not tracked
        self._watch_again = 0.0
        self._is_out = False
        self._received: queue.Queue[tuple[float, Change]] = queue.Queue(_MOST_WAITING)
        self._missed = 0
        self.shown = 0

    def run(self, count: int | None, end: float | None) -> None:
        """Print until there were `count` lines, or until `end` on the monotonic clock, or until the output is closed."""
        listener = Listener(self._client, list(self._channels))
        background = InThread(listener, partial(listener.for_each, self._take, _ignore))
        background.start()
        try:
            self._renew()
            click.echo(f"following the events of {self._client.settings.namespace}", err=True)
            while not _is_over(end) and not (count and self.shown >= count):
                self._renew()
                self._show(self._collect(end), count)
                if _is_closed():
                    raise BrokenPipeError
        finally:
            background.stop()

    def _take(self, message: Message) -> None:
        """Receive a message, in the thread of the listener; changes that are not taken in time are counted."""
        change = change_of(self._channels[message["channel"]], message["data"])
        if not self._wanted.has(change):
            return
        try:
            self._received.put_nowait((time(), change))
        except queue.Full:
            self._missed += 1

    def _collect(self, end: float | None) -> list[tuple[float, Change]]:
        """Return what was received in one tick, which begins with the first change; nothing after a second."""
        found: list[tuple[float, Change]] = []
        until = min(monotonic() + 1.0, end or monotonic() + 1.0)
        while (left := until - monotonic()) > 0:
            try:
                found.append(self._received.get(timeout=left))
            except queue.Empty:
                break
            if len(found) == 1:
                until = min(monotonic() + _TICK, end or monotonic() + _TICK)
        return found

    def _show(self, changes: list[tuple[float, Change]], count: int | None) -> None:
        missed, self._missed = self._missed, 0
        if missed:
            click.echo(f"{counted(missed, 'change')} not shown, because they came too fast", err=True)
        if not changes:
            return
        lines = self._try(
            lambda: self._client.runner.run(lines_of(self._client.shard, changes, self._wanted))
        )
        for line in lines or ():
            if count and self.shown >= count:
                return
            self._print(line)
            self.shown += 1

    def _renew(self) -> None:
        """Let the store publish changes for another minute."""
        if self._watches and monotonic() >= self._watch_again:
            self._watch_again = monotonic() + _RENEWED
            try:
                done = self._try(lambda: self._client.runner.run(watch(self._client.shard)))
            except StoreUnsupported as error:
                raise HoldfastError(
                    f"{error}; `holdfast events --tracked` does not require the right to write"
                ) from error
            if done is None:
                self._watch_again = monotonic() + 1.0

    def _try(self, call: Callable[[], T]) -> T | None:
        """Return the result of a call, None while the store does not respond, which is printed once."""
        try:
            result = call()
        except TransportError as error:
            if not self._is_out:
                echo_text(UNAVAILABLE % error, err=True)
            self._is_out = True
            return None
        if self._is_out:
            click.echo("the store is available again; events published meanwhile are not shown", err=True)
        self._is_out = False
        return result


def _print_line(line: EventLine) -> None:
    echo_text(line.text)


def _print_line_json(line: EventLine) -> None:
    print_json(line.as_dict())


def _ignore(message: Message) -> None:
    """Ignore a message that could not be read: nothing of ours raises there."""


def _is_over(end: float | None) -> bool:
    return end is not None and monotonic() >= end


def _is_closed() -> bool:
    """Return whether the output has no reader any more: a pipe whose reader has ended, or a closed terminal."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(0))
