"""What operators look at: queues, jobs, failures, workers, throttles, recurring jobs, settings. Each is a plan of few calls.

Lists are pages: `next` of a page is the cursor of the following one, "" after the last. Times are milliseconds of the
store's clock, ages and lengths are seconds.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Generic, TypeVar

import msgspec

from holdfast.client.explanation import Explanation, explained
from holdfast.commands.admin import AuditLine, AuditList, ConfigGet, PatternFacts, Patterns, SettingsGet
from holdfast.commands.attributes import Tags
from holdfast.commands.failures import START, FailureGroup
from holdfast.commands.jobs import Await, JobGet, Outcome
from holdfast.commands.operations import JobRow, OperationGet, Operations, Scan
from holdfast.commands.queues import (
    CountQueues,
    GetStats,
    QueueGet,
    QueueNames,
    ThrottleFacts,
    ThrottleGet,
    ThrottleNames,
)
from holdfast.commands.recurring import RecurGet, RecurringFacts
from holdfast.commands.topics import CountTopics, TopicCounts
from holdfast.commands.views import Cursor, ListSet, Minutes, Tallies
from holdfast.commands.workers import MAX_ROWS, HeldJob, WorkerFacts, WorkerJobs, Workers
from holdfast.console.filters import glob
from holdfast.console.operations import Operation, operation_of
from holdfast.console.search import row_of
from holdfast.console.unknown import unknown
from holdfast.errors import JobNotFound, UsageError, refusal
from holdfast.models import Counts, HistoryEntry, JobFacts, Stats
from holdfast.settings import MAX_BATCH, OWN_THROTTLE, check_name, check_throttle, check_whole
from holdfast.wire.plans import Plan, Planner, all_counts, all_failure_groups

T = TypeVar("T")
HOUR_MS: Final = 3_600_000
SAMPLE: Final = 200
"""How many of the newest jobs of a failure group are compared."""
_NEWEST: Final = 50
"""How many of them are looked at for their queues."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some rows of a list, the cursor of the next ones ("": there are no more), and how many there are, -1 if unknown."""

    rows: tuple[T, ...]
    next: str = ""
    total: int = -1


def _limit(limit: object) -> int:
    return check_whole("limit", limit, 1, MAX_BATCH)


# Queues.

SORTS: Final = (
    "name",
    "waiting",
    "running",
    "failed",
    "stalled",
    "scheduled",
    "throttled",
    "depends",
    "oldest",
)


def queues(ask: Planner, pattern: str, sort: str, after: str, limit: int) -> Plan[Page[Counts]]:
    """Return a page of the queues whose name matches a glob, by name, or with the largest number first.

    A page by name reads the queues that it shows; any other order reads all of them.
    """
    size = _limit(limit)
    if sort not in SORTS:
        raise UsageError(f"sort: expected one of {', '.join(SORTS)}, got {sort!r:.80}")
    matches = glob(pattern)
    if sort == "name":
        names = sorted(name for name in (yield from ask(QueueNames())) if matches(name))
        chosen = [name for name in names if name > after][: size + 1]
        rows = (yield from ask(CountQueues(chosen[:size]))) if chosen else []
        return Page(tuple(rows), chosen[size - 1] if len(chosen) > size else "", len(names))
    found = [one for one in (yield from all_counts(ask)) if matches(one.name)]
    found.sort(key=lambda one: (-_rank(one, sort), one.name))
    first = check_whole("cursor", int(after or 0) if (after or "0").isdecimal() else after, 0, 1 << 40)
    more = str(first + size) if len(found) > first + size else ""
    return Page(tuple(found[first : first + size]), more, len(found))


def _rank(one: Counts, sort: str) -> float:
    if sort == "oldest":
        return -one.oldest_ms if one.oldest_ms else float("-inf")
    return float(getattr(one, sort))


class Series(msgspec.Struct, frozen=True, gc=False):
    """What happened in a queue in one period that ended at `when_ms`."""

    when_ms: int
    seconds: float
    put: int
    popped: int
    completed: int
    failed: int
    retried: int
    lost: int


def series_of(lines: Sequence[Tallies]) -> tuple[Series, ...]:
    """Return the differences of exact counts, one for each period."""
    found: list[Series] = []
    for before, now in pairwise(lines):
        step, seconds = now.since(before), (now.when_ms - before.when_ms) / 1000
        found.append(
            Series(
                now.when_ms,
                seconds,
                step.put,
                step.popped,
                step.completed,
                step.failed,
                step.retried,
                step.lost,
            )
        )
    return tuple(found)


class QueueDetail(msgspec.Struct, frozen=True):
    """One queue: its counts, the statistics of a day, what happened lately, its throttle, and who works for it."""

    counts: Counts
    day_ms: int
    stats: Stats
    series: tuple[Series, ...]
    throttle: ThrottleFacts
    options: Mapping[str, int]
    workers: tuple[str, ...]

    @property
    def drains_in(self) -> float | None:
        """Seconds until nothing waits at the rate of the last ten minutes; None if it does not shrink."""
        recent = [step for step in self.series if step.when_ms > self.series[-1].when_ms - 600_000]
        seconds = sum(step.seconds for step in recent)
        shrinks = sum(step.popped - step.put for step in recent)
        return self.counts.waiting * seconds / shrinks if shrinks > 0 and seconds else None


def queue(ask: Planner, name: str, day_ms: int, since_ms: int) -> Plan[QueueDetail]:
    """Return one queue. Raises HoldfastError if it is not known."""
    known = yield from ask(QueueNames())
    if check_name("queue", name) not in known:
        raise unknown("queue", name, known)
    [counts] = yield from ask(CountQueues((name,)))
    stats = yield from ask(GetStats(name, day_ms))
    lines = yield from ask(Minutes(name, since_ms))
    throttle = yield from ask(ThrottleGet(OWN_THROTTLE + name))
    options = yield from ask(QueueGet(name))
    found = yield from workers_for(ask, name)
    return QueueDetail(counts, day_ms, stats, series_of(lines), throttle, options, found)


def workers_for(ask: Planner, queue: str) -> Plan[tuple[str, ...]]:
    """Return the names of the workers that take jobs of a queue, as they report it."""
    everybody = yield from all_workers(ask)
    return tuple(worker.name for worker in everybody if serves(worker, queue))


def serves(worker: WorkerFacts, queue: str) -> bool:
    """Return whether a worker reports a queue, or a pattern that may match it."""
    return any(glob(name)(queue) for name in queues_of(worker) if not name.startswith("!"))


def queues_of(worker: WorkerFacts) -> list[str]:
    """Return the queues and patterns that a worker reports; none if its report cannot be read."""
    try:
        return msgspec.json.decode(worker.facts.get("queues", "[]").encode(), type=list[str])
    except msgspec.MsgspecError:
        return []


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


def attempts_of(history: Iterable[HistoryEntry]) -> tuple[Attempt, ...]:
    """Return the runs of a job, read from its history, the first one first."""
    found: list[Attempt] = []
    for line in history:
        if line.what == _STARTS:
            found.append(Attempt(line.attempt, line.worker, line.token, line.when_ms))
        elif line.what in _ENDS and found and not found[-1].outcome:
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
        if line.what not in _OF_CORE
    ] + list(facts.log)


class JobDetail(msgspec.Struct, frozen=True):
    """One job: its facts, its runs, why it is running or not, and the jobs it waits for or that wait for it."""

    facts: JobFacts
    attempts: tuple[Attempt, ...]
    explanation: Explanation
    dependencies: tuple[JobRow, ...]
    dependents: tuple[JobRow, ...]


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
    before = yield from _rows(ask, facts.dependencies[:_RELATIVES])
    after = yield from _rows(ask, facts.dependents[:_RELATIVES])
    return JobDetail(facts, attempts_of(facts.history), explanation, before, after)


def _rows(ask: Planner, jids: Sequence[str]) -> Plan[tuple[JobRow, ...]]:
    found = (yield from ask(JobGet(jids))) if jids else []
    return tuple(
        row_of(facts) if facts else JobRow(jid, state="gone") for jid, facts in zip(jids, found, strict=True)
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
    """Return one failure group. Raises UsageError if it has no jobs."""
    check_name("group", name)
    found = next((group for group in (yield from all_failure_groups(ask)) if group.name == name), None)
    if found is None:
        raise UsageError(f"there is no failure group {name!r}")
    page = yield from ask(Scan("group", name, None, check_whole("sample", sample, 1, MAX_BATCH), "dte"))
    messages = Counter(last_line(row.message) for row in page.jobs)
    return FailureDetail(found, tuple(messages.most_common(5)), shares_of(page.jobs), page.jobs[:10])


def last_line(message: str) -> str:
    """Return the line of a message that names the error: its last one."""
    return (message.strip().splitlines() or [""])[-1][:300]


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
        data = msgspec.json.decode(row.data)
    except msgspec.MsgspecError:
        return
    yield from _leaves("data", data, 2)


def _leaves(path: str, value: object, depth: int) -> Iterable[tuple[str, str]]:
    if isinstance(value, (str, int, float, bool)):
        yield path, str(value)[:100]
    elif depth and isinstance(value, dict):
        for name, one in list(value.items())[:50]:
            yield from _leaves(f"{path}.{name}", one, depth - 1)
    elif depth and isinstance(value, list):
        for index, one in enumerate(value[:20]):
            yield from _leaves(f"{path}.{index}", one, depth - 1)


# Workers.


class WorkerDetail(msgspec.Struct, frozen=True):
    """A worker, the queues and patterns that it reports, and the jobs that it holds."""

    facts: WorkerFacts
    queues: tuple[str, ...]
    holds: tuple[HeldJob, ...]
    klasses: Mapping[str, str]


def workers(ask: Planner, after: str, limit: int) -> Plan[Page[WorkerFacts]]:
    """Return a page of workers, most recently seen first."""
    size = min(_limit(limit), MAX_ROWS)
    seen, _, name = after.partition(" ")
    rows = yield from ask(Workers((seen, name), size))
    more = f"{rows[-1].seen_ms} {rows[-1].name}" if len(rows) == size else ""
    return Page(tuple(rows), more)


def all_workers(ask: Planner) -> Plan[list[WorkerFacts]]:
    """Return every worker, most recently seen first."""
    found: dict[str, WorkerFacts] = {}
    after = ""
    while True:
        page = yield from workers(ask, after, MAX_ROWS)
        found.update({worker.name: worker for worker in page.rows})
        after = page.next
        if not after:
            return list(found.values())


def held(ask: Planner, name: str) -> Plan[list[HeldJob]]:
    """Return the jobs that a worker holds, those of all workers for ""; the one held longest first."""
    found: dict[str, HeldJob] = {}
    cursor, is_first = "", True
    while cursor or is_first:
        page = yield from ask(WorkerJobs(name, cursor))
        found.update({one.jid: one for one in page.jobs})
        cursor, is_first = page.cursor, False
    return sorted(found.values(), key=lambda one: one.since_ms)


def worker(ask: Planner, name: str) -> Plan[WorkerDetail]:
    """Return one worker. Raises HoldfastError if it is not known."""
    everybody = {one.name: one for one in (yield from all_workers(ask))}
    found = everybody.get(check_name("worker", name))
    if found is None:
        raise unknown("worker", name, everybody)
    holds = yield from held(ask, name)
    jids = [one.jid for one in holds[:MAX_BATCH]]
    jobs = (yield from ask(JobGet(jids[:100]))) if jids else []
    klasses = {facts.jid: facts.klass for facts in jobs if facts is not None}
    return WorkerDetail(found, tuple(queues_of(found)), tuple(holds), klasses)


# Throttles.


class Throttle(msgspec.Struct, frozen=True):
    """A throttle with its use: who holds a slot since when, and who waits for one, the first ones of each."""

    id: str
    facts: ThrottleFacts
    holders: tuple[tuple[str, float], ...] = ()
    waiters: tuple[tuple[str, float], ...] = ()

    @property
    def queue(self) -> str:
        """The queue whose own throttle this is, "" for a named one."""
        return self.id.removeprefix(OWN_THROTTLE) if self.id.startswith(OWN_THROTTLE) else ""


def throttles(ask: Planner, cursor: str, limit: int) -> Plan[Page[Throttle]]:
    """Return a page of throttles that have a limit, in no order."""
    following, names = yield from ask(ThrottleNames(cursor or START, _limit(limit)))
    facts: dict[str, ThrottleFacts] = {}
    for name in sorted(names):
        facts[name] = yield from ask(ThrottleGet(name))
    rows = tuple(Throttle(name, one) for name, one in facts.items())
    return Page(rows, "" if following == START else following)


def throttle(ask: Planner, id: str, limit: int) -> Plan[Throttle]:
    """Return one throttle with its first holders and waiters. Raises HoldfastError if nothing is known of it."""
    size = _limit(limit)
    facts = yield from ask(ThrottleGet(check_throttle(id)))
    if facts == ThrottleFacts(0, 0, 0):
        yield from _check_known(ask, id)
    holders = yield from ask(ListSet("holders", id, None, size))
    waiters = yield from ask(ListSet("pending", id, None, size))
    return Throttle(
        id,
        facts,
        tuple((one.member, float(one.score)) for one in holders.entries),
        tuple((one.member, float(one.score)) for one in waiters.entries),
    )


def _check_known(ask: Planner, id: str) -> Plan[None]:
    """Raise HoldfastError unless a throttle without limit and jobs is that of a known queue."""
    queues = yield from ask(QueueNames())
    if id.startswith(OWN_THROTTLE) and id.removeprefix(OWN_THROTTLE) in queues:
        return
    _, names = yield from ask(ThrottleNames(START, MAX_BATCH))
    raise unknown("throttle", id, [*names, *(OWN_THROTTLE + name for name in queues)])


# Recurring jobs, topics, tags.


class Place(msgspec.Struct, frozen=True):
    """Where a list over many queues continues: the queue under way, and the last entry seen of it."""

    queue: str = ""
    after: Cursor | None = None

    def __str__(self) -> str:
        return msgspec.json.encode([self.queue, *(self.after or ())]).decode() if self.queue else ""

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read a cursor. Raises UsageError."""
        try:
            words = msgspec.json.decode(text.encode(), type=list[str]) if text else [""]
        except (msgspec.MsgspecError, UnicodeEncodeError):
            words = []
        if len(words) not in (1, 3):
            raise UsageError(f"a cursor is what the page before returned, not {text!r:.80}")
        return cls(words[0], (words[1], words[2]) if len(words) == 3 else None)


def recurring(ask: Planner, pattern: str, after: str, limit: int) -> Plan[Page[RecurringFacts]]:
    """Return a page of the recurring jobs of the queues that match a glob, by queue, the next due one first."""
    size, place, matches = _limit(limit), Place.parse(after), glob(pattern)
    counts = yield from all_counts(ask)
    names = sorted(one.name for one in counts if one.recurring and matches(one.name))
    total = sum(one.recurring for one in counts if matches(one.name))
    found: list[RecurringFacts] = []
    for name in names:
        if name < place.queue:
            continue
        start = place.after if name == place.queue else None
        page = yield from ask(ListSet("recurring", name, start, size - len(found)))
        templates = (yield from ask(RecurGet(page.names))) if page.names else []
        found += [one for one in templates if one is not None]
        if page.next is not None or len(found) >= size:
            last = page.next or (page.entries[-1].score, page.entries[-1].member)
            more = page.next is not None or name != names[-1]
            return Page(tuple(found), str(Place(name, last)) if more else "", total)
    return Page(tuple(found), "", total)


def topics(ask: Planner, after: str, limit: int) -> Plan[Page[TopicCounts]]:
    """Return a page of topics in order of first use."""
    size, place = min(_limit(limit), 128), Place.parse(after)
    page = yield from ask(ListSet("topics", "", place.after, size))
    rows = (yield from ask(CountTopics(page.names))) if page.names else []
    return Page(tuple(rows), str(Place("topics", page.next)) if page.next else "")


def tags(ask: Planner, after: str, limit: int) -> Plan[Page[tuple[str, int]]]:
    """Return a page of tags with how many jobs have each, most used first."""
    size = _limit(limit)
    first = check_whole("cursor", int(after or 0) if (after or "0").isdecimal() else after, 0, 1 << 40)
    found = yield from ask(Tags(1, first, size))
    rows = tuple(found.items())
    return Page(rows, str(first + size) if len(rows) == size else "")


# The installation.


class Setting(msgspec.Struct, frozen=True):
    """A setting of the namespace: its value, its default, its unit and its meaning. `is_set`: it differs from the default."""

    name: str
    value: str
    default: str
    unit: str
    meaning: str
    is_set: bool


class Settings(msgspec.Struct, frozen=True):
    """The settings of the namespace, those that users defined, and the patterns and priorities of queues."""

    known: tuple[Setting, ...]
    others: Mapping[str, str]
    patterns: PatternFacts


_SETTINGS: Final[Mapping[str, tuple[str, str, str]]] = {
    "heartbeat": (
        "30",
        "seconds",
        "length of a lease; a worker renews it three times as often; <queue>-heartbeat for one queue",
    ),
    "grace-period": (
        "5",
        "seconds",
        "time that a worker whose lease ended has, before the job is handed out again",
    ),
    "jobs-history": ("604800", "seconds", "age at which completed jobs are deleted"),
    "jobs-history-count": ("50000", "jobs", "number of completed jobs that are kept"),
    "max-job-history": ("100", "lines", "length of the history of one job; 0: any"),
    "max-pop-retry": ("1", "jobs", "kept for older programs; has no effect"),
    "max-worker-age": ("86400", "seconds", "silence after which a worker is left out of lists"),
    "application": ("holdfast", "", "name that notices and pages show"),
    "unknown-for": (
        "600",
        "seconds",
        "time that a job waits for a worker that has its code, before it fails",
    ),
    "stats-days": ("400", "days", "age at which statistics are deleted"),
    "keep-data": ("0", "0 or 1", "1: data that an attempt changed are kept with the attempt"),
    "max-history-bytes": ("262144", "bytes", "size of the history of one job"),
    "max-queues": ("1000000", "queues", "number of queues there may be"),
    "max-data": ("1048576", "bytes", "size of the data with which a job is put"),
}
"""The settings of a namespace: default, unit and meaning."""


def settings(ask: Planner) -> Plan[Settings]:
    """Return every setting with its meaning, those that users defined, and the patterns of queues."""
    stored = yield from ask(ConfigGet())
    inner = yield from ask(SettingsGet())
    patterns = yield from ask(Patterns())
    values = {name: value for name, value in stored.items() if value is not None}
    values |= {name: str(value) for name, value in inner.items()}
    known = [
        Setting(name, values.get(name, default), default, unit, meaning, values.get(name, default) != default)
        for name, (default, unit, meaning) in _SETTINGS.items()
    ]
    others = {name: value for name, value in sorted(values.items()) if name not in _SETTINGS}
    return Settings(tuple(known), others, patterns)


def audit(ask: Planner, before: str, limit: int) -> Plan[Page[AuditLine]]:
    """Return a page of the audit log, newest first."""
    size = min(_limit(limit), 128)
    rows = yield from ask(AuditList(before, size))
    return Page(tuple(rows), rows[-1].id if len(rows) == size else "")


def operations(ask: Planner, offset: int, limit: int, now_ms: int) -> Plan[list[Operation]]:
    """Return the operations on many jobs, the newest first."""
    rows = yield from ask(Operations(offset, min(_limit(limit), 64)))
    return [operation_of(facts, now_ms) for facts in rows]


def operation(ask: Planner, id: str, now_ms: int) -> Plan[Operation]:
    """Return one operation with its first refusals. Raises OperationNotFound."""
    detail = yield from ask(OperationGet(check_name("operation", id)))
    if detail is None:
        raise refusal(f"HF_OPERATION_NOT_FOUND {id}")
    return operation_of(detail.facts, now_ms, detail)
