"""What happens in a namespace, as one line for each change: of jobs, queues, workers, failures, settings.

The store publishes names of what changed while someone watches (`Watch`), and the events of tracked jobs always. Both go to
those who listen at that moment; what a change was is looked up afterwards, so it shows the state a moment later.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.client.events import EVENTS
from holdfast.commands.admin import Watch
from holdfast.commands.jobs import JobGet
from holdfast.commands.queues import CountQueues
from holdfast.models import Counts, JobFacts
from holdfast.printable import one_line
from holdfast.wire.exchange import exchange
from holdfast.wire.plans import Plan
from holdfast.wire.shards import Shard

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
            return ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "empty"
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
