"""Single jobs and failure groups, as operators look at them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.client.explanation import Explanation, explained
from holdfast.client.plans import all_failure_groups
from holdfast.code.failure import error_line
from holdfast.codecs import decode
from holdfast.commands.failures import FailureGroup
from holdfast.commands.job_rows import JobRow
from holdfast.commands.jobs import Await, JobGet, Outcome
from holdfast.commands.operations import Scan
from holdfast.commands.recurring import RecurGet, RecurringFacts
from holdfast.console.filters import glob
from holdfast.console.read.flows import FlowPlace, place_of, returned_of
from holdfast.console.search.search import as_counted, row_of
from holdfast.console.unknown import unknown
from holdfast.errors import CodecError, JobNotFound
from holdfast.models import HistoryEntry, JobFacts
from holdfast.settings import MAX_BATCH, check_name, check_whole
from holdfast.wire.plans import Plan, Planner

SAMPLE: Final = 200
"""How many of the newest jobs of a failure group are compared."""
_NEWEST: Final = 50
"""How many of them are looked at for their queues."""


# Jobs.


class Attempt(msgspec.Struct, frozen=True):
    """One run of a job: who ran it from when to when (0: it runs), and how it ended."""

    number: int
    worker: str
    token: int
    start_ms: int
    end_ms: int = 0
    outcome: str = ""
    name: str = ""
    reason: str = ""


_STARTS: Final = "popped"
_ENDS: Final = frozenset(
    ("done", "failed", "failed-retries", "retried", "timed-out", "preempted", "crashed", "lost", "unknown")
)


_AFTER: Final[dict[str, tuple[str, ...]]] = dict.fromkeys(
    ("done", "failed", "failed-retries", "retried"), ("timed-out",)
)
"""What a worker still reports of a run whose lease had ended in an outage, and was renewed after it."""


def attempts_of(history: Iterable[HistoryEntry]) -> tuple[Attempt, ...]:
    """Return the runs of a job, read from its history, the first one first."""
    found: list[Attempt] = []
    for line in history:
        if line.what == _STARTS:
            found.append(Attempt(line.attempt, line.worker, line.token, line.when_ms))
        elif line.what in _ENDS and found and found[-1].outcome in ("", *_AFTER.get(line.what, ())):
            found[-1] = msgspec.structs.replace(
                found[-1], end_ms=line.when_ms, outcome=line.what, name=line.name, reason=line.reason
            )
    return tuple(found)


_OF_CORE: Final = _ENDS | {"put", _STARTS, "throttled", "advanced"}


def logged(facts: JobFacts) -> list[str]:
    """Return the lines that the code of a job logged: those of its history, then those of its reports."""
    return [
        " ".join([line.what, *(f"{name}={value}" for name, value in line.data.items())])
        for line in facts.history
        if line.what not in _OF_CORE and not line.refusal
    ] + list(facts.log)


class JobDetail(msgspec.Struct, frozen=True):
    """One job: its facts, its runs, why it is running or not, the jobs it waits for or that wait for it.

    `flow` is its place in a flow, if it is part of one, `returned` the flow that it returned in its last attempt ("": none).
    """

    facts: JobFacts
    attempts: tuple[Attempt, ...]
    explanation: Explanation
    dependencies: tuple[JobRow, ...]
    dependents: tuple[JobRow, ...]
    flow: FlowPlace | None = None
    returned: str = ""


_RELATIVES: Final = 50


def job(ask: Planner, jid: str, flags: str) -> Plan[JobDetail | RecurringFacts]:
    """Return one job, or a recurring job of that jid. Raises JobNotFound, with what is known of its end."""
    [facts] = yield from ask(JobGet((check_name("jid", jid),)))
    if facts is None:
        [template] = yield from ask(RecurGet((jid,)))
        if template is not None:
            return template
        gone = yield from ask(explained(jid))
        raise JobNotFound(f"{jid}: {gone.text}", "HF_JOB_NOT_FOUND")
    explanation = yield from ask(explained(jid, flags))
    now_ms = int(explanation.facts.get("now", 0))
    before = yield from _rows(ask, facts.dependencies[:_RELATIVES], now_ms)
    after = yield from _rows(ask, facts.dependents[:_RELATIVES], now_ms)
    facts = as_counted(facts, now_ms)
    if facts.state in ("stalled", "waiting") and explanation.state in ("running", "stalled"):
        explanation = msgspec.structs.replace(explanation, state=facts.state)
    place, returned = (yield from place_of(ask, jid)), (yield from returned_of(ask, jid, facts.attempts))
    return JobDetail(facts, attempts_of(facts.history), explanation, before, after, place, returned)


def _rows(ask: Planner, jids: Sequence[str], now_ms: int) -> Plan[tuple[JobRow, ...]]:
    found = (yield from ask(JobGet(jids))) if jids else []
    return tuple(
        row_of(facts, now_ms) if facts else JobRow(jid, state="gone")
        for jid, facts in zip(jids, found, strict=True)
    )


def outcome(ask: Planner, jid: str) -> Plan[Outcome]:
    """Return how a job ended; `open` if it has not."""
    [facts] = yield from ask(JobGet((check_name("jid", jid),)))
    if facts is not None and facts.state not in ("complete", "failed"):
        return Outcome("open")
    [found] = yield from ask(Await((jid,)))
    return found


# Failures.


class Shared(msgspec.Struct, frozen=True):
    """A value that many jobs of a failure group have: `count` of the `of` that were compared."""

    what: str
    value: str
    count: int
    of: int


class FailureDetail(msgspec.Struct, frozen=True):
    """A failure group, the messages of its newest jobs by how often they occur, and what these jobs share."""

    group: FailureGroup
    messages: tuple[tuple[str, int], ...]
    shares: tuple[Shared, ...]
    newest: tuple[JobRow, ...]


def failures(ask: Planner, pattern: str) -> Plan[list[FailureGroup]]:
    """Return the failure groups whose name matches a glob, the one with the latest failure first."""
    matches = glob(pattern)
    return [group for group in (yield from all_failure_groups(ask)) if matches(group.name)]


def failed_queues(ask: Planner, groups: Sequence[str]) -> Plan[dict[str, tuple[str, ...]]]:
    """Return the queues of the newest jobs of each group, the one with most of them first."""
    found: dict[str, tuple[str, ...]] = {}
    for name in groups:
        page = yield from ask(Scan("group", name, None, _NEWEST))
        counts = Counter(row.queue for row in page.jobs)
        found[name] = tuple(queue for queue, _ in counts.most_common())
    return found


def failure(ask: Planner, name: str, sample: int = SAMPLE) -> Plan[FailureDetail]:
    """Return one failure group. Raises UnknownName if it has no jobs."""
    check_name("group", name)
    groups = {group.name: group for group in (yield from all_failure_groups(ask))}
    found = groups.get(name)
    if found is None:
        raise unknown("failure group", name, groups)
    page = yield from ask(Scan("group", name, None, check_whole("sample", sample, 1, MAX_BATCH), "dte"))
    messages = Counter(error_line(row.message) for row in page.jobs)
    return FailureDetail(found, tuple(messages.most_common(5)), shares_of(page.jobs), page.jobs[:10])


_SHARED: Final = 0.5
"""The part of the jobs that has to have a value, for it to be shown as shared."""


def shares_of(jobs: Sequence[JobRow]) -> tuple[Shared, ...]:
    """Return which values at least half of the jobs have in common: klass, queue, worker, tags, data at the top."""
    counts = Counter[tuple[str, str]]()
    for row in jobs:
        counts.update({("klass", row.klass), ("queue", row.queue), ("worker", row.worker)})
        counts.update({("tag", tag) for tag in row.tags})
        counts.update(set(_data_of(row)))
    least = max(len(jobs) * _SHARED, 2)
    found = [
        Shared(what, value, count, len(jobs))
        for (what, value), count in counts.items()
        if count >= least and value
    ]
    return tuple(sorted(found, key=lambda one: (-one.count, one.what, one.value))[:20])


def _data_of(row: JobRow) -> Iterable[tuple[str, str]]:
    """Return the paths and plain values of the data, two levels deep."""
    try:
        data = decode(row.data)
    except CodecError:
        return
    yield from _leaves("data", data, 2)


def _leaves(path: str, value: object, depth: int) -> Iterable[tuple[str, str]]:
    if isinstance(value, (str, int, float, bool)):
        yield path, str(value)[:100]
    elif depth and isinstance(value, dict):
        members: dict[str, object] = cast("Any", value)
        for name, one in list(members.items())[:50]:
            yield from _leaves(f"{path}.{name}", one, depth - 1)
    elif depth and isinstance(value, list):
        elements: list[object] = cast("Any", value)
        for index, one in enumerate(elements[:20]):
            yield from _leaves(f"{path}.{index}", one, depth - 1)
