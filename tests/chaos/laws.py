"""The laws that hold over a history, whatever was done to the processes that made it.

A history has two sides: what clients wrote down (puts and their outcomes, executions), and what the store says
happened to each job. `broken` names each law that does not hold, with the job that shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.models import JobFacts

ENDS = ("done", "failed", "failed-retries")
RELEASES = (*ENDS, "retried")


@dataclass(frozen=True)
class Said:
    """One put, as its client saw it: `outcome` is ok or unknown."""

    jid: str
    outcome: str = "ok"
    delay_ms: int = 0


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
class History:
    puts: list[Said] = field(default_factory=list)
    jobs: dict[str, Told] = field(default_factory=dict)
    begun: list[tuple[str, int]] = field(default_factory=list)
    """(jid, token) of each execution, as workers wrote it down."""


def told(facts: JobFacts) -> Told:
    """A job as the laws see it."""
    lines = [Line(line.what, line.when_ms, line.token, line.worker) for line in facts.history]
    return Told(facts.state, lines)


def history(diaries: list[dict[str, Any]], jobs: list[JobFacts]) -> History:
    """Both sides together. A put that was asked and has no outcome is unknown: its process died."""
    delays: dict[str, int] = {}
    outcomes: dict[str, str] = {}
    made = History(jobs={facts.jid: told(facts) for facts in jobs})
    for entry in diaries:
        if entry["what"] == "asked":
            delays[entry["jid"]] = entry["delay_ms"]
        elif entry["what"] in ("ok", "unknown"):
            outcomes[entry["jid"]] = entry["what"]
        elif entry["what"] == "begin":
            made.begun.append((entry["jid"], entry["token"]))
    made.puts = [Said(jid, outcomes.get(jid, "unknown"), delay) for jid, delay in delays.items()]
    return made


def broken(past: History) -> list[str]:
    """The laws that do not hold, as sentences; none for a good history."""
    return [
        *_puts(past),
        *_executions(past),
        *(sentence for jid in past.jobs for sentence in _job(past, jid)),
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
        if jid not in asked:
            yield f"L3 {jid}: in the store, and nobody put it"


def _due(job: Told, said: Said) -> int:
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
        elif line.what == "timed-out":
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
