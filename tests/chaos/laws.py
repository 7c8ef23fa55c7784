"""The laws that hold over a history, whatever was done to the processes that made it.

A history has two sides: what clients wrote down (puts and their outcomes, executions), and what the store says
happened to each job. `broken` names each law that does not hold, with the job that shows it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from holdfast.models import JobFacts

ENDS = ("done", "failed", "failed-retries")
RELEASES = (*ENDS, "retried")
GIVEN_BACK = ("preempted", "unknown")
"""What ends a lease without an end of the job, and costs it nothing."""
LOSSES = ("timed-out", "crashed", "lost")


@dataclass(frozen=True)
class StoreMessage:
    """One put, as its client saw it: `outcome` is ok or unknown."""

    jid: str
    outcome: str = "ok"
    delay_ms: int = 0
    parents: tuple[str, ...] = ()
    throttle: str = ""


@dataclass(frozen=True)
class Line:
    """One thing that happened to a job, as the store tells it."""

    what: str
    when: int
    token: int = 0
    worker: str = ""


@dataclass(frozen=True)
class Told:
    """One job, as the store tells it at the end."""

    state: str
    lines: list[Line]


@dataclass
class Harm:
    """Something done to the processes of a worker (of all workers, if `worker` is "") between two moments, in ms."""

    worker: str
    begin: float
    end: float = inf

    def touches(self, worker: str, begin: float, end: float) -> bool:
        """Whether it may be why `worker`, the parent or a child, lost a lease that it had from `begin` to `end`."""
        is_meant = self.worker in ("", worker, worker.rpartition("-")[0])
        return is_meant and self.begin <= end and begin <= self.end


@dataclass
class History:
    puts: list[StoreMessage] = field(default_factory=list)
    jobs: dict[str, Told] = field(default_factory=dict)
    begun: list[tuple[str, int]] = field(default_factory=list)
    """(jid, token) of each execution, as workers wrote it down."""
    limits: dict[str, int] = field(default_factory=dict)
    """How many jobs may hold a slot, per throttle."""
    templates: dict[str, int] = field(default_factory=dict)
    """The interval in milliseconds of what recurs, by jid; its jobs are `<jid>-<number>`."""
    harms: list[Harm] | None = None
    """All that was done to workers, if that is known; only then a lost lease can be anybody's fault."""


def told(facts: JobFacts) -> Told:
    """A job as the laws see it."""
    lines = [Line(line.what, line.when_ms, line.token, line.worker) for line in facts.history]
    return Told(facts.state, lines)


def history(diaries: list[dict[str, Any]], jobs: list[JobFacts]) -> History:
    """Both sides together. A put that was asked and has no outcome is unknown: its process died."""
    asked: dict[str, dict[str, Any]] = {}
    outcomes: dict[str, str] = {}
    made = History(jobs={facts.jid: told(facts) for facts in jobs})
    for entry in diaries:
        if entry["what"] == "asked":
            asked[entry["jid"]] = entry
        elif entry["what"] in ("ok", "unknown"):
            outcomes[entry["jid"]] = entry["what"]
        elif entry["what"] == "begin":
            made.begun.append((entry["jid"], entry["token"]))
    made.puts = [
        StoreMessage(
            jid, outcomes.get(jid, "unknown"), one["delay_ms"], tuple(one["parents"]), one["throttle"]
        )
        for jid, one in asked.items()
    ]
    return made


def broken(past: History) -> list[str]:
    """The laws that do not hold, as sentences; none for a good history."""
    return [
        *_puts(past),
        *_executions(past),
        *_throttles(past),
        *_dependencies(past),
        *_recurrences(past),
        *_leases(past),
        *(sentence for jid in past.jobs if jid not in orphans(past) for sentence in _job(past, jid)),
    ]


def _puts(past: History) -> Iterator[str]:
    asked = {said.jid for said in past.puts}
    for said in past.puts:
        job = past.jobs.get(said.jid)
        if job is None:
            if said.outcome == "ok":
                yield f"L1 {said.jid}: acknowledged, and the store does not know it"
            continue
        if sum(line.what == "put" for line in job.lines) != 1:
            yield f"L2 {said.jid}: put {said.outcome}, and it is there more than once or without a put"
        early = [line for line in job.lines if line.what == "popped" and line.when < _due(job, said)]
        if early:
            yield f"L11 {said.jid}: granted {_due(job, said) - early[0].when} ms early"
    for jid in past.jobs:
        if jid not in asked and _template(past, jid) is None:
            yield f"L3 {jid}: in the store, and nobody put it"


def _template(past: History, jid: str) -> str | None:
    """What a job recurs for, if it does."""
    found = re.fullmatch(r"(.+)-\d+", jid)
    return found[1] if found and found[1] in past.templates else None


def _throttles(past: History) -> Iterator[str]:
    """A slot is held from the first grant of a run to its end, lost leases in between or not."""
    for name, limit in past.limits.items():
        moments: list[tuple[int, int, str]] = []
        for said in past.puts:
            held = False
            for line in past.jobs[said.jid].lines if said.throttle == name and said.jid in past.jobs else ():
                if line.what == "popped" and not held:
                    moments.append((line.when, 1, said.jid))
                    held = True
                elif line.what in RELEASES and held:
                    moments.append((line.when, -1, said.jid))
                    held = False
        count = 0
        for when, step, jid in sorted(moments):
            count += step
            if count > limit:
                yield f"L8 {jid}: granted at {when} as the {count}th under {name}, which has {limit} slots"


def _end(past: History, jid: str) -> int | None:
    """When a job was done, if it was."""
    lines = past.jobs[jid].lines if jid in past.jobs else []
    return next((line.when for line in lines if line.what == "done"), None)


def _dependencies(past: History) -> Iterator[str]:
    for said in past.puts:
        lines = past.jobs[said.jid].lines if said.jid in past.jobs else []
        for line in lines:
            if line.what != "popped":
                continue
            for parent in said.parents:
                end = _end(past, parent)
                if end is None or end > line.when:
                    yield f"L9 {said.jid}: granted at {line.when}, and {parent} was done at {end}"


def orphans(past: History) -> set[str]:
    """Jobs that wait for one that failed: for ever, by the rule."""
    return {
        said.jid
        for said in past.puts
        if said.jid in past.jobs
        and past.jobs[said.jid].state == "depends"
        and any(_end(past, parent) is None for parent in said.parents)
    }


def _recurrences(past: History) -> Iterator[str]:
    """Occurrences are numbered from 1 without a gap, and put an interval apart, each once."""
    for template, interval in past.templates.items():
        count = sum(_template(past, jid) == template for jid in past.jobs)
        start: int | None = None
        for number in range(1, count + 1):
            jid = f"{template}-{number}"
            puts = (
                [line.when for line in past.jobs[jid].lines if line.what == "put"] if jid in past.jobs else []
            )
            start = puts[0] if start is None and puts else start
            if start is None or puts != [start + (number - 1) * interval]:
                yield f"L13 {jid}: put at {puts}, number 1 was put at {start}"


def _leases(past: History) -> Iterator[str]:
    """A worker that lives and reaches the store renews the lease of each job while it runs, so that none is lost."""
    for jid, job in past.jobs.items() if past.harms is not None else ():
        grant: Line | None = None
        for line in job.lines:
            if line.what == "popped":
                grant = line
            elif line.what in LOSSES and grant is not None:
                if not any(harm.touches(grant.worker, grant.when, line.when) for harm in past.harms or ()):
                    yield (
                        f"L18 {jid}: granted to {grant.worker} at {grant.when}, {line.what} at {line.when}, "
                        "and nothing was done to that worker"
                    )
                grant = None


def _due(job: Told, said: StoreMessage) -> int:
    return next((line.when for line in job.lines if line.what == "put"), 0) + said.delay_ms


def _executions(past: History) -> Iterator[str]:
    granted = {
        (jid, line.token) for jid, job in past.jobs.items() for line in job.lines if line.what == "popped"
    }
    for jid, token in past.begun:
        if jid in past.jobs and (jid, token) not in granted:
            yield f"L6 {jid}: executed under token {token}, which was never granted"


def _job(past: History, jid: str) -> Iterator[str]:
    """The laws of one job's lines: one holder, growing tokens, ends by the holder only, one end."""
    holder: Line | None = None
    noticed = True
    highest, ends = 0, 0
    for line in past.jobs[jid].lines:
        if line.what == "popped":
            if not noticed:
                yield f"L4 {jid}: granted to {line.worker} while {holder and holder.worker} held it"
            if line.token <= highest:
                yield f"L5 {jid}: token {line.token} after {highest}"
            holder, noticed, highest = line, False, max(highest, line.token)
        elif line.what in (*LOSSES, *GIVEN_BACK):
            noticed = True
        elif line.what in RELEASES:
            # A job whose retries were used up by lost leases is ended by the store, in nobody's name.
            if line.worker and (holder is None or (line.token, line.worker) != (holder.token, holder.worker)):
                yield f"L6 {jid}: {line.what} under token {line.token} of {line.worker}, who did not hold it"
            ends += line.what in ENDS
            holder, noticed = None, True
    if ends != 1:
        yield f"L7 {jid}: {ends} ends, and it is {past.jobs[jid].state}"
    elif past.jobs[jid].state not in ("complete", "failed"):
        yield f"L7 {jid}: it has ended, and it is {past.jobs[jid].state}"
