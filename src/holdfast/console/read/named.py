"""What operators see and do with single things by name: queues of a pattern, a recurring job, a running job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, Unpack

import msgspec

from holdfast.client.descriptors import AnyClient, CommandMethod, PlanMethod, StepMethod
from holdfast.client.plans import counts_of, found_jobs, in_slices
from holdfast.client.put_options import make_put
from holdfast.client.recur_options import OF_PLANS, Changes, make_recur, make_update
from holdfast.client.stacks import STACK_TIMEOUT_S, LiveStack, ask_worker
from holdfast.client.topics.messages import body_of, epoch_ms, moment_of
from holdfast.client.topics.topic import first, requeued, upto
from holdfast.client.workers import is_meant
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.admin import Audit, AuditLine, Info
from holdfast.commands.base import map_reply
from holdfast.commands.dependencies import Depend
from holdfast.commands.job_rows import JobRow
from holdfast.commands.queues import (
    GetStats,
    Pause,
    QueueForget,
    QueueNames,
    QueueOption,
    QueueSet,
    ThrottleFacts,
    ThrottleGet,
)
from holdfast.commands.recurring import RecurGet, RecurringFacts, RecurTag
from holdfast.commands.topics import (
    MAX_MOVED,
    CountTopics,
    Message,
    TopicCounts,
    TopicDelete,
    TopicGet,
    TopicPull,
    TopicPut,
    TopicRelease,
    TopicReschedule,
    TopicReserve,
)
from holdfast.commands.views import Cursor, ListSet
from holdfast.commands.workers import WorkerFacts
from holdfast.console.actions import Part, checked_edit, checked_reason, reveal
from holdfast.console.configuration import ConfigurationVerbs
from holdfast.console.filters import glob
from holdfast.console.health.installation import InstallationVerbs, audit_lines
from holdfast.console.operations.dependents import DependentJobs, waiters_of
from holdfast.console.put import NamedCode
from holdfast.console.read import job_lists, queries, queue_figures
from holdfast.console.read.charts import Steps as ChartSteps
from holdfast.console.read.failure_list import FailureList, failure_list
from holdfast.console.read.fleet import FleetVerbs
from holdfast.console.read.job_tree import JobTree, job_tree
from holdfast.console.read.marks import Mark, marks
from holdfast.console.read.namespace_queries import SettingsPlace, recurring
from holdfast.console.read.queries import Page, QueueDetail, Throttle, all_workers, held
from holdfast.console.read.queue_figures import QueueFigures, QueueJobs
from holdfast.console.read.throttle_list import (
    ThrottleDetail,
    named_throttles,
    queue_throttles,
    throttle_detail,
)
from holdfast.console.search.search import row_of
from holdfast.console.unknown import unknown
from holdfast.errors import HoldfastError
from holdfast.models import Counts, Sample, Stats
from holdfast.settings import (
    MAX_BATCH,
    SHORTEST,
    check_each,
    check_milliseconds,
    check_name,
    check_names,
    check_queue,
    check_throttle,
    check_whole,
)
from holdfast.wire.plans import Plan, Planner

_AUDITED: Final = 50


class RecurringDetail(msgspec.Struct, frozen=True):
    """A recurring job, and the jobs that it put last, the newest first; the state of one that is deleted is gone.

    `moments` has for which moment each was put, in epoch milliseconds, by its jid, and `audit` the last lines of the audit log about it.
    """

    facts: RecurringFacts
    recent: tuple[JobRow, ...]
    moments: Mapping[str, int] = {}
    audit: tuple[AuditLine, ...] = ()


class NamedVerbs(FleetVerbs, ConfigurationVerbs, InstallationVerbs):
    """The queries and actions of operators on things by name."""

    _client: AnyClient
    actor: str

    @PlanMethod
    def queue_names(self, ask: Planner, *names: str) -> Plan[list[str]]:
        """The queues of these names and globs, each once. Raises HoldfastError for a name or glob without a queue."""
        return queue_names(ask, names)

    @PlanMethod
    def known_queue(self, ask: Planner, name: str) -> Plan[str]:
        """The name of a queue that is known. Raises HoldfastError if it is not."""
        return known_queue(ask, name)

    @PlanMethod
    def counts(self, ask: Planner, *queues: str) -> Plan[list[Counts]]:
        """The counts of these queues, also of unknown ones."""
        return counts_of(ask, check_names("queue", queues, 1 << 40))

    @PlanMethod
    def workers_of(self, ask: Planner, *names: str) -> Plan[list[WorkerFacts]]:
        """The workers of these names, each of one worker or of a worker command. Raises HoldfastError if one is not known."""
        return workers_of(ask, names)

    @PlanMethod
    def is_drained(self, ask: Planner, worker: str, since_ms: int) -> Plan[bool]:
        """Whether a worker that was made quiet at `since_ms` has finished its jobs: it was seen since, and holds none; or it is gone."""
        known = {one.name: one for one in (yield from all_workers(ask))}
        if worker in known and (not known[worker].quiet or known[worker].seen_ms <= since_ms):
            return False
        return not (yield from held(ask, worker))

    @PlanMethod
    def recurring_job(self, ask: Planner, jid: str) -> Plan[RecurringFacts]:
        """One recurring job. Raises HoldfastError if it is not known."""
        return recurring_job(ask, jid)

    @PlanMethod
    def update_recurring(self, ask: Planner, jid: str, **changes: Unpack[Changes]) -> Plan[bool]:
        """Change attributes of a recurring job, checked as `update` of its handle does. Raises UsageError, JobNotFound."""
        present = None
        if not OF_PLANS.isdisjoint(changes):
            [found] = yield from ask(RecurGet((check_name("jid", jid),)))
            present = None if found is None else found.calendar
        update = make_update(self._client.settings, check_name("jid", jid), changes, present)
        return (yield from ask(checked_edit(update)))

    @CommandMethod
    def tag_recurring(self, jid: str, *tags: str, remove: bool = False) -> Command[list[str]]:
        """Add tags to the jobs that a recurring job puts from now on, or remove some. Returns all of them."""
        names = check_each("tag", tags, MAX_BATCH)
        return RecurTag("remove" if remove else "add", check_name("jid", jid), names)

    @PlanMethod
    def recurring_detail(self, ask: Planner, jid: str, most: int = 20) -> Plan[RecurringDetail]:
        """One recurring job with the last `most` jobs that it put. Raises HoldfastError if it is not known."""
        facts = yield from recurring_job(ask, jid)
        jids = last_jids(facts, check_whole("most", most, 1, MAX_BATCH))
        jobs = (yield from found_jobs(ask, jids)) if jids else []
        now = (yield from ask(Info())).now_ms
        rows = tuple(
            row_of(one, now) if one else JobRow(jid, state="gone")
            for jid, one in zip(jids, jobs, strict=True)
        )
        moments = {one.jid: one.scheduled_for_ms or one.created_ms for one in jobs if one}
        lines = yield from audit_lines(ask, "", _AUDITED, "", jid)
        audit = tuple(one for one in lines.rows if "recurring" in one.what and jid in one.target.split(", "))
        return RecurringDetail(facts, rows, moments, audit)

    @PlanMethod
    def last_jobs(
        self, ask: Planner, *facts: RecurringFacts, most: int = 10
    ) -> Plan[dict[str, tuple[JobRow, ...]]]:
        """The last `most` jobs that each recurring job put, by its jid, the newest first."""
        return last_jobs(ask, facts, check_whole("most", most, 1, MAX_BATCH))

    @CommandMethod
    def add_recurring(
        self,
        queue: str,
        klass: str,
        data: object,
        interval: float | None,
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> Command[str]:
        """Put a job into a queue every `interval` seconds, or by the calendar in the options. Returns the jid of the recurring job. Raises UsageError.

        `options` are those of `recur` of a queue. An existing one of the same `jid` is replaced. Not audited, as no put is.
        """
        given = {"interval": interval, **options}
        return make_recur(self._client.settings, check_queue("queue", queue), klass, data, given)

    @PlanMethod
    def failure_list(
        self,
        ask: Planner,
        pattern: str = "*",
        *,
        queue: str = "",
        within: float = 0,
        sort: str = "-latest",
        after: str = "",
        limit: int = 25,
    ) -> Plan[FailureList]:
        """A page of failure groups with their latest message and queues.

        `sort` is name, jobs, first, latest or growth, with `-` before it for the largest first. `queue`: those with jobs of that queue among their newest; `within`: those with a failure in that many of the last seconds.
        """
        info = yield from ask(Info())
        return (yield from failure_list(ask, pattern, queue, within, sort, after, limit, info.now_ms))

    @PlanMethod
    def queue_throttles(
        self, ask: Planner, pattern: str = "*", *, after: str = "", limit: int = 25
    ) -> Plan[Page[Throttle]]:
        """A page of the own throttles of queues, also of those without a limit, by name."""
        return queue_throttles(ask, pattern, after, limit)

    @PlanMethod
    def named_throttles(
        self, ask: Planner, pattern: str = "*", *, after: str = "", limit: int = 25
    ) -> Plan[Page[Throttle]]:
        """A page of at most `limit` throttles that have a limit and are not those of queues, each with its first holder."""
        return named_throttles(ask, pattern, after, limit)

    @CommandMethod
    def throttle_facts(self, id: str) -> Command[ThrottleFacts]:
        """The limit and use of a throttle; of one that nothing is known of, that it has no limit."""
        return ThrottleGet(check_throttle(id))

    @PlanMethod
    def throttle_detail(
        self, ask: Planner, id: str, *, holders_after: str = "", waiters_after: str = "", limit: int = 25
    ) -> Plan[ThrottleDetail]:
        """One throttle with a page of the jobs that hold a slot, and of those that wait. Raises HoldfastError if it is not known."""
        return throttle_detail(ask, id, holders_after, waiters_after, limit)

    @PlanMethod
    def completed(self, ask: Planner, *, after: str = "", limit: int = 25) -> Plan[job_lists.CompletedPage]:
        """A page of completed jobs with their results, the latest first, and how long they are kept."""
        return job_lists.completed(ask, after, limit)

    @PlanMethod
    def tracked(
        self, ask: Planner, state: str = "", *, after: str = "", limit: int = 25
    ) -> Plan[job_lists.TrackedPage]:
        """A page of tracked jobs, with how many are in each state; marks whose job is gone are `expired`."""
        return job_lists.tracked(ask, state, after, limit)

    @PlanMethod
    def tag_states(self, ask: Planner, *tags: str) -> Plan[dict[str, Counter[str]]]:
        """How many of the first 64 jobs of each tag are in each state."""
        return job_lists.tag_states(ask, tags)

    @PlanMethod
    def family(self, ask: Planner, jid: str, most: int = job_lists.MOST_RELATIVES) -> Plan[job_lists.Family]:
        """The jobs around one that it depends on or that depend on it, over any number of steps, `most` at most."""
        return job_lists.family(ask, jid, most)

    @PlanMethod
    def job_tree(self, ask: Planner, jid: str, depth: int = 10, limit: int = 100) -> Plan[JobTree]:
        """What a job waits for and what waits for it, over at most `depth` steps and `limit` jobs each. Raises JobNotFound."""
        return job_tree(ask, jid, depth, limit)

    @PlanMethod
    def reveal(self, ask: Planner, jid: str, part: Part = "data") -> Plan[bytes]:
        """A part of a job as it is stored, for somebody whom a page shows it masked. The audit log names who saw it."""
        return reveal(ask, self.actor or "unnamed", jid, part)

    @PlanMethod
    def waiters(self, ask: Planner, *jids: str, show: int = 10) -> Plan[DependentJobs]:
        """How many jobs wait for some others and are not among them, over any number of steps, and the first of them."""
        return waiters_of(ask, check_names("jid", jids, 1 << 20), check_whole("show", show, 0, MAX_BATCH))

    @CommandMethod
    def undepend(self, jid: str, *parents: str) -> Command[int]:
        """Remove dependencies of a job; all of them, if none is named.

        Raises JobNotFound, WrongState.
        """
        names = check_names("parent", parents, MAX_BATCH) if parents else []
        return Depend(check_name("jid", jid), names, "remove" if names else "all")

    @StepMethod
    def stack(self, jid: str, timeout: float = STACK_TIMEOUT_S) -> Steps[LiveStack]:
        """Where a running job is in its code. Raises JobNotFound, WrongState when it is not running, TimeoutError."""
        found: LiveStack = yield ask_worker(self._client, jid, timeout)
        return found


def queue_names(ask: Planner, given: Sequence[str]) -> Plan[list[str]]:
    """Return the queues of names and globs, each once. A name of an existing queue is never read as a glob."""
    known = yield from ask(QueueNames())
    all_of = frozenset(known)
    found: dict[str, None] = {}
    for name in check_each("queue", given):
        matches = glob(name)
        some = [name] if name in all_of else [one for one in known if matches(one)] if "*" in name else []
        if not some and "*" in name:
            raise HoldfastError(f'no queue matches "{name:.200}"')
        if not some:
            raise unknown("queue", name, known)
        found.update(dict.fromkeys(some))
    return list(found)


def known_queue(ask: Planner, name: str) -> Plan[str]:
    """Return the name of a queue that is known. Raises HoldfastError if it is not."""
    known = yield from ask(QueueNames())
    if check_name("queue", name) not in known:
        raise unknown("queue", name, known)
    return name


def workers_of(ask: Planner, given: Sequence[str]) -> Plan[list[WorkerFacts]]:
    """Return the workers that names stand for, each once."""
    known = yield from all_workers(ask)
    found: dict[str, WorkerFacts] = {}
    for name in check_each("worker", given):
        some = {worker.name: worker for worker in known if is_meant(name, worker.name)}
        if not some:
            raise unknown("worker", name, [worker.name for worker in known])
        found |= some
    return list(found.values())


def recurring_job(ask: Planner, jid: str) -> Plan[RecurringFacts]:
    """Return one recurring job. Raises HoldfastError if it is not known."""
    [found] = yield from ask(RecurGet((check_name("jid", jid),)))
    if found is None:
        page = yield from recurring(ask, "*", "", MAX_BATCH)
        raise unknown("recurring job", jid, [one.jid for one in page.rows])
    return found


def last_jids(facts: RecurringFacts, most: int) -> list[str]:
    """Return the jids of the last `most` jobs that a recurring job put, the newest first; some may be deleted."""
    return [f"{facts.jid}-{number}" for number in range(facts.count, max(facts.count - most, 0), -1)]


def last_jobs(
    ask: Planner, templates: Sequence[RecurringFacts], most: int
) -> Plan[dict[str, tuple[JobRow, ...]]]:
    """Return the last `most` jobs that each recurring job put, by its jid, the newest first."""
    names = {one.jid: last_jids(one, most) for one in templates}
    jids = [jid for some in names.values() for jid in some]
    jobs = dict(zip(jids, (yield from found_jobs(ask, jids)) if jids else [], strict=True))
    now = (yield from ask(Info())).now_ms if jids else 0
    return {
        jid: tuple(row_of(facts, now) if (facts := jobs[one]) else JobRow(one, state="gone") for one in some)
        for jid, some in names.items()
    }


# What operators see and do with queues.


class ConsoleQueueVerbs:
    """The queries and actions of operators on queues."""

    _client: AnyClient
    actor: str

    @PlanMethod
    def queues(
        self,
        ask: Planner,
        pattern: str = "*",
        *,
        sort: str = "name",
        reverse: bool = False,
        after: str = "",
        limit: int = 100,
    ) -> Plan[Page[Counts]]:
        """A page of queues; `sort` is name, oldest, or a state (the largest number first); `reverse` is the other way round."""
        return queries.queues(ask, pattern, sort, after, limit, reverse)

    @PlanMethod
    def queue(
        self, ask: Planner, name: str, *, day_ms: int = 0, since_ms: int | None = None
    ) -> Plan[QueueDetail]:
        """One queue, with the statistics of a UTC day (0: today), and its series (from three hours ago)."""
        now = yield from _now(ask)
        since = now - 3 * queries.HOUR_MS if since_ms is None else since_ms
        return (yield from queries.queue(ask, name, day_ms, since))

    @PlanMethod
    def queue_stats(self, ask: Planner, name: str, day_ms: int = 0) -> Plan[Stats]:
        """The statistics of a queue on a UTC day (0: today)."""
        return ask(GetStats(check_name("queue", name), check_whole("day", day_ms, 0, 1 << 52)))

    @PlanMethod
    def queue_figures(self, ask: Planner, counts: Sequence[Counts]) -> Plan[list[QueueFigures]]:
        """What happened lately in some queues whose counts are known, how long their jobs wait, and their workers."""
        return (yield from queue_figures.figures_of(ask, self._client.shard, counts, (yield from _now(ask))))

    @PlanMethod
    def throughput(self, ask: Planner, queues: Sequence[str], range: str = "90m") -> Plan[ChartSteps]:
        """What happened in up to 40 queues together, step by step; `range`: 90m, 24h, 7d or FROM-TO. Raises UsageError."""
        names = check_names("queue", queues, 1 << 40)
        return (yield from queue_figures.throughput(self._client.shard, names, range, (yield from _now(ask))))

    @PlanMethod
    def backlog(self, ask: Planner, queue: str, over: ChartSteps) -> Plan[tuple[int | None, ...]]:
        """How many jobs of a queue waited at the end of each step of a chart; None where it was not noted."""
        return queue_figures.backlog(self._client.shard, check_name("queue", queue), over)

    @PlanMethod
    def marks(self, ask: Planner, found: ChartSteps, queue: str = "") -> Plan[tuple[Mark, ...]]:
        """What happened in the period of a chart that explains it: new versions of workers, and pauses of a queue."""
        return marks(ask, (found.times or (0,))[0] * 1000, found.end_ms, queue)

    @PlanMethod
    def waits(self, ask: Planner, queues: Sequence[str]) -> Plan[Sample]:
        """How long the jobs of up to 40 queues waited today, as one sample."""
        return queue_figures.waits_of(self._client.shard, check_names("queue", queues, 1 << 40))

    @PlanMethod
    def queue_jobs(
        self, ask: Planner, queue: str, state: str, *, after: str = "", limit: int = 25
    ) -> Plan[QueueJobs]:
        """A page of the jobs of a queue in one state, waiting ones in the order in which they are popped."""
        now = yield from _now(ask)
        return (yield from queue_figures.jobs_of(ask, self._client.shard, queue, state, after, limit, now))

    @PlanMethod
    def recurring_of(
        self, ask: Planner, queue: str, *, after: str = "", limit: int = 25
    ) -> Plan[Page[RecurringFacts]]:
        """A page of the recurring jobs of a queue, the next due one first."""
        return queue_figures.recurring_of(ask, queue, after, limit)

    @PlanMethod
    def queue_heartbeat(self, ask: Planner, queue: str) -> Plan[str]:
        """The length of the leases of a queue in seconds, "" if it is that of the namespace."""
        return queue_figures.heartbeat_of(ask, check_name("queue", queue))

    @CommandMethod
    def pause(self, *queues: str, why: str = "", seconds: float = 0) -> Command[int]:
        """Pause queues, without end or for a number of seconds. Returns how many were not paused."""
        names, length = check_names("queue", queues, MAX_BATCH), check_milliseconds("seconds", seconds)
        return Pause(names, True, self.actor, checked_reason(why), length)

    @CommandMethod
    def resume(self, *queues: str) -> Command[int]:
        """Resume queues. Returns how many were paused."""
        return Pause(check_names("queue", queues, MAX_BATCH), False, self.actor)

    @CommandMethod
    def forget_queue(self, name: str) -> Command[int]:
        """Remove an empty queue from the list. Raises QueueNotEmpty."""
        return QueueForget((check_name("queue", name),))

    @CommandMethod
    def set_queue(
        self, name: str, option: QueueOption, value: int | None, *, seen: int | Literal[""] | None = None
    ) -> Command[int | None]:
        """Set a limit of a queue, None to remove it, if it is what was `seen` ("": not set). Raises WrongState."""
        return QueueSet(check_name("queue", name), option, value, seen)

    @PlanMethod
    def put_job(
        self, ask: Planner, queue: str, code: NamedCode, data: object, options: Mapping[str, Any]
    ) -> Plan[str]:
        """Put a job by the name of its code, as `NamedCode` prepares it. Returns its jid. Raises UsageError, QueueFull."""
        command = make_put(
            self._client.settings, check_name("queue", queue), code.name, data, code.options(options)
        )
        jid = yield from ask(command)
        if self.actor:
            yield from ask(Audit(self.actor, "put", queue, f"{jid} {code.name}"[:1000]))
        return jid


def _now(ask: Planner) -> Plan[int]:
    info = yield from ask(Info())
    return info.now_ms


# What operators and programs do with topics: what a topic holds, and put, take, release, requeue and delete
# messages.


class TopicDetail(msgspec.Struct, frozen=True):
    """A topic: its counts, its first queued messages by ready time, and its first reserved ones by deadline.

    `next` is the cursor of the queued messages that follow, "" after the last.
    """

    counts: TopicCounts
    queued: tuple[Message, ...]
    reserved: tuple[Message, ...]
    next: str = ""


class ConsoleTopicVerbs:
    """The queries and actions of topics. Only what operators do is audited: delete and reschedule.

    Moments are epoch seconds of the store, `max` and `at` by default its now; durations are seconds.
    """

    _client: AnyClient
    actor: str

    @PlanMethod
    def topic(self, ask: Planner, name: str, limit: int = 25, *, after: str = "") -> Plan[TopicDetail]:
        """One topic with its first messages, or the queued ones after a cursor. Raises HoldfastError if it holds none."""
        return topic(ask, name, check_whole("limit", limit, 1, MAX_BATCH), after)

    @CommandMethod
    def topic_counts(self, name: str) -> Command[TopicCounts]:
        """How many messages a topic holds, also one without any."""
        return map_reply(CountTopics((check_name("topic", name),)), first)

    @CommandMethod
    def message(self, topic: str, id: str) -> Command[Message | None]:
        """One message, None if the topic has none of that id."""
        return map_reply(TopicGet(check_name("topic", topic), (check_name("id", id),)), first)

    @CommandMethod
    def put_message(
        self, topic: str, id: str, body: str, delay: float | None = None, *, at: float | None = None
    ) -> Command[bool]:
        """Put a message into a topic, ready in `delay` seconds or `at` a moment. False if the id exists."""
        how, when = moment_of(delay, at)
        words = (check_name("id", id), when, body_of(body, self._client.settings.max_data))
        return map_reply(TopicPut(check_name("topic", topic), how, words), first)

    @CommandMethod
    def reserve_messages(
        self, topic: str, limit: int = 1, *, ttr: float = 60.0, max: float | None = None
    ) -> Command[list[Message]]:
        """Reserve the earliest messages that are ready by `max`; no other program gets them for `ttr` seconds after it."""
        name, length = check_name("topic", topic), check_milliseconds("ttr", ttr, SHORTEST)
        size = check_whole("limit", limit, 1, MAX_BATCH)
        return map_reply(TopicReserve(name, length, upto(max), size), lambda found: found.messages)

    @CommandMethod
    def pull_messages(
        self, topic: str, limit: int = 1, *, max: float | None = None
    ) -> Command[list[Message]]:
        """Take the earliest messages that are ready by `max`, and delete them."""
        size = check_whole("limit", limit, 1, MAX_BATCH)
        return TopicPull(check_name("topic", topic), upto(max), size)

    @CommandMethod
    def release_messages(
        self,
        topic: str,
        *ids: str,
        delay: float | None = None,
        at: float | None = None,
        deadline: float | None = None,
    ) -> Command[list[bool]]:
        """End reservations: the messages are deleted, or with `delay` or `at` queued again, ready then.

        With `deadline` only reservations that end at that moment, as `reserve_messages` returned it. Returns False for each
        that is not reserved, or not so.
        """
        until = None if deadline is None else epoch_ms("deadline", deadline)
        name, held = check_name("topic", topic), [(id, until) for id in check_names("id", ids, MAX_BATCH)]
        if delay is None and at is None:
            return TopicRelease(name, held)
        return TopicRelease(name, held, *moment_of(delay, at))

    @PlanMethod
    def requeue_messages(
        self, ask: Planner, topic: str, limit: int = MAX_MOVED, *, max: float | None = None
    ) -> Plan[int]:
        """Queue up to `limit` messages again whose reservation has ended by `max`, ready then. Returns how many."""
        return requeued(ask, topic, max, limit)

    @CommandMethod
    def reschedule_messages(
        self, topic: str, *ids: str, delay: float | None = None, at: float | None = None
    ) -> Command[list[bool]]:
        """Change when queued messages are ready: in `delay` seconds (default: now), or `at` a moment.

        Returns False for each that is not queued.
        """
        how, when = moment_of(delay, at)
        names = check_names("id", ids, MAX_BATCH)
        return TopicReschedule(check_name("topic", topic), names, how, when)

    @CommandMethod
    def delete_messages(self, topic: str, *ids: str) -> Command[list[bool]]:
        """Delete messages, queued or reserved. Returns whether each existed."""
        return TopicDelete(check_name("topic", topic), check_names("id", ids, MAX_BATCH))


def topic(ask: Planner, name: str, limit: int, after: str = "") -> Plan[TopicDetail]:
    """Return one topic with its first messages. Raises HoldfastError if it holds none."""
    place = SettingsPlace.parse(after)
    [found] = yield from ask(CountTopics((check_name("topic", name),)))
    if not found.queued and not found.reserved:
        page = yield from ask(ListSet("topics", "", None, MAX_BATCH))
        raise unknown("topic", name, page.names)
    queued, following = yield from _messages(ask, "queued", name, limit, place.after)
    reserved, _ = yield from _messages(ask, "reserved", name, limit)
    return TopicDetail(found, queued, reserved, str(SettingsPlace(name, following)) if following else "")


def _messages(
    ask: Planner, state: str, topic: str, limit: int, after: Cursor | None = None
) -> Plan[tuple[tuple[Message, ...], Cursor | None]]:
    page = yield from ask(ListSet(state, topic, after, limit))
    found: list[Message | None] = []
    yield from in_slices(ask, lambda ids: TopicGet(topic, ids), page.names, found)
    return tuple(one for one in found if one is not None), page.next
