"""What follows from the facts of a job: its arguments, what its state allows, what it was at each moment, what helps it."""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, Final, cast

import msgspec

from holdfast.client.reasons import Check
from holdfast.code.registry import find
from holdfast.console.operations.spec import APPLIES
from holdfast.console.plain import stored
from holdfast.console.read.job_queries import Attempt, JobDetail
from holdfast.models import HistoryEntry, JobFacts


class Fix(msgspec.Struct, frozen=True):
    """What helps where a check blocks: an action, or a page."""

    label: str
    noun: str = ""
    verb: str = ""
    fields: Mapping[str, Any] = {}
    path: str = ""


class Moment(msgspec.Struct, frozen=True):
    """A job as it was after a line of its history, the first line being 1; `data` are None where they are not known."""

    line: int
    when_ms: int
    state: str
    queue: str
    worker: str
    attempt: int
    data: Any = None


def arguments_of(value: Any, klass: str = "") -> tuple[tuple[str, Any], ...] | None:
    """Return the arguments of a function job by name; None for any other job.

    Those that were given by position have their names where this process knows the function, else the number of their place.
    """
    if not isinstance(value, dict) or not value.keys() <= {"args", "kwargs"} or not value:
        return None
    members = cast("dict[str, Any]", value)
    args, kwargs = members.get("args", []), members.get("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        return None
    values = cast("list[object]", args)
    names = _positional(klass)
    numbers = [str(at) for at in range(len(names) + 1, len(values) + 1)]
    return (*zip([*names, *numbers], values, strict=False), *cast("dict[str, Any]", kwargs).items())


def _positional(klass: str) -> list[str]:
    """Return the names of the arguments that a function takes by position, none if this process does not know it."""
    entry = find(klass)
    found = signature(entry.function).parameters.values() if entry else ()
    return [one.name for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def result_until_ms(facts: JobFacts) -> int:
    """Return until when the result of a job is kept, 0 where that is not known."""
    keep = facts.options.get("keep")
    return facts.ended_ms + int(keep) if keep and facts.ended_ms and facts.result is not None else 0


_ALWAYS: Final = ("move", "track", "tag")
_BY_STATE: Final = ("retry", "run", "expire", "delay", "priority", "retries", "data", "cancel", "delete")


def actions_of(facts: JobFacts, now_ms: int) -> tuple[str, ...]:
    """Return the actions that make sense for a job: a failed one is deleted, any other open one cancelled.

    A job whose lease has ended can be failed.
    """
    state = (
        "running" if facts.state == "stalled" else facts.state
    )  # its lease has ended, and no worker has it yet
    found = [action for action in _BY_STATE if state in APPLIES[action]]
    found.remove("cancel" if state == "failed" else "delete") if {"cancel", "delete"} <= set(found) else None
    is_lost = state == "running" and 0 < facts.expires_ms <= now_ms
    return (*found, *(["fail"] if is_lost else []), *_ALWAYS)


_STATE_AFTER: Final[Mapping[str, str]] = {
    "put": "waiting",
    "advanced": "waiting",
    "popped": "running",
    "throttled": "throttled",
    "done": "complete",
    "failed": "failed",
    "failed-retries": "failed",
    "retried": "waiting",
    "timed-out": "waiting",
    "preempted": "waiting",
    "crashed": "waiting",
    "lost": "waiting",
    "unknown": "waiting",
}
_OF_QUEUE: Final = ("put", "advanced", "popped")


def moments_of(facts: JobFacts) -> tuple[Moment, ...]:
    """Return the job as it was after each line of its history, the first line first."""
    found: list[Moment] = []
    state, queue, worker, attempt = "waiting", facts.queue, "", 0
    for at, line in enumerate(facts.history, 1):
        if line.what in _STATE_AFTER:
            state = _STATE_AFTER[line.what]
            queue = line.name if line.what in _OF_QUEUE and line.name else queue
            worker = line.worker if state == "running" else ""
            attempt = line.attempt or attempt
        found.append(Moment(at, line.when_ms, state, queue, worker, attempt, data_at(facts, state, attempt)))
    return tuple(found)


def data_at(facts: JobFacts, state: str, attempt: int) -> Any:
    """Return the data that a job had in an attempt: those kept with that attempt or the next one kept, else those of now."""
    begun = attempt if state == "running" else attempt + 1
    return stored(next((data for number, data in facts.earlier if number >= begun), facts.data))


def fixes_of(detail: JobDetail) -> dict[str, Fix]:
    """Return what helps against the checks that block, by check, where this application can do it."""
    found = {
        one.check: _fix(one, detail.facts) for one in detail.explanation.checks if one.verdict == "blocks"
    }
    return {check: fix for check, fix in found.items() if fix is not None}


def _fix(check: Check, facts: JobFacts) -> Fix | None:
    one = {"jid": [facts.jid]}
    if check.check == "dependencies":
        parents = [str(row["jid"]) for row in check.facts["parents"]]
        first = next(iter((*check.facts["failed"], *parents)), "")
        return Fix("Open the job it waits for", path=first) if first else None
    if check.check == "throttles":
        return _throttle_fix(check, facts)
    if check.check == "workers":
        quiet = [str(row["name"]) for row in check.facts["workers"] if row["quiet"]]
        return Fix("Resume its workers", "workers", "resume", {"name": quiet}) if quiet else None
    return {
        "failure": Fix("Retry", "jobs", "retry", one),
        "due": Fix("Run now", "jobs", "run", one),
        "lease": Fix("Time out", "jobs", "expire", one),
        "pause": Fix(f"Resume {facts.queue}", "queues", "resume", {"name": [facts.queue]}),
    }.get(check.check)


def _throttle_fix(check: Check, facts: JobFacts) -> Fix | None:
    rows = check.facts["throttles"]
    full = [str(row["id"]) for row in rows if row["used"] >= row["maximum"] > 0]
    is_released = facts.state == "throttled" and not any(row["place"] for row in rows)
    if full and not is_released:
        return Fix("Open the throttle", noun="throttle", path=full[0])
    return Fix("Put it again", "jobs", "move", {"jid": [facts.jid], "value": facts.queue})


def waited_ms(history: Sequence[HistoryEntry], attempt: Attempt) -> int:
    """Return how long a job had been ready before an attempt, as far as its history shows that."""
    before = [
        line.when_ms
        for line in history
        if line.when_ms <= attempt.start_ms and line.what not in ("popped", "refused")
    ]
    return attempt.start_ms - max(before, default=attempt.start_ms)
