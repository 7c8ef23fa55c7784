"""What operators see and do with single things by name: queues of a pattern, a recurring job, a running job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Unpack

import msgspec

from holdfast.client.descriptors import AnyClient, CommandMethod, PlanMethod, StepMethod
from holdfast.client.plans import counts_of, found_jobs
from holdfast.client.recur_options import Changes, make_recur, make_update
from holdfast.client.stacks import PATIENCE, LiveStack, ask_worker
from holdfast.client.workers import is_meant
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.admin import Info
from holdfast.commands.dependencies import Depend
from holdfast.commands.job_rows import JobRow
from holdfast.commands.queues import QueueNames, ThrottleFacts, ThrottleGet
from holdfast.commands.recurring import RecurGet, RecurringFacts, RecurTag
from holdfast.commands.workers import WorkerFacts
from holdfast.console.actions import Part, checked_edit, reveal
from holdfast.console.configuration import ConfigurationVerbs
from holdfast.console.filters import glob
from holdfast.console.health.installation import InstallationVerbs
from holdfast.console.operations.dependents import Waiters, waiters_of
from holdfast.console.read import job_lists
from holdfast.console.read.failure_list import FailureList, failure_list
from holdfast.console.read.fleet import FleetVerbs
from holdfast.console.read.namespace_queries import recurring
from holdfast.console.read.queries import Page, Throttle, all_workers, held
from holdfast.console.read.throttle_list import (
    ThrottleDetail,
    named_throttles,
    queue_throttles,
    throttle_detail,
)
from holdfast.console.search.search import row_of
from holdfast.console.unknown import unknown
from holdfast.errors import HoldfastError
from holdfast.models import Counts
from holdfast.settings import (
    MAX_BATCH,
    check_each,
    check_name,
    check_names,
    check_queue,
    check_throttle,
    check_whole,
)
from holdfast.wire.plans import Plan, Planner


class RecurringDetail(msgspec.Struct, frozen=True):
    """A recurring job, and the jobs that it put last, the newest first; the state of one that is deleted is gone."""

    facts: RecurringFacts
    recent: tuple[JobRow, ...]


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

    @CommandMethod
    def update_recurring(self, jid: str, **changes: Unpack[Changes]) -> Command[bool]:
        """Change attributes of a recurring job, checked as `update` of its handle does. Raises UsageError, JobNotFound."""
        return checked_edit(make_update(self._client.settings, check_name("jid", jid), changes))

    @CommandMethod
    def tag_recurring(self, jid: str, *tags: str, remove: bool = False) -> Command[list[str]]:
        """Add tags to the jobs that a recurring job puts from now on, or remove some. Returns all of them."""
        names = check_each("tag", tags, MAX_BATCH)
        return RecurTag("remove" if remove else "add", check_name("jid", jid), names)

    @PlanMethod
    def recurring_detail(self, ask: Planner, jid: str, most: int = 20) -> Plan[RecurringDetail]:
        """One recurring job with the last `most` jobs that it put. Raises HoldfastError if it is not known."""
        facts = yield from recurring_job(ask, jid)
        found = yield from last_jobs(ask, [facts], check_whole("most", most, 1, MAX_BATCH))
        return RecurringDetail(facts, found[jid])

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
        interval: float,
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> Command[str]:
        """Put a job into a queue every `interval` seconds. Returns the jid of the recurring job. Raises UsageError.

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

        `sort` is name, jobs, first, latest or growth, with `-` before it for the largest first. `queue`: those with jobs of that queue among their newest; `within`: those with a failure in so many seconds.
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
    def reveal(self, ask: Planner, jid: str, part: Part = "data") -> Plan[bytes]:
        """A part of a job as it is stored, for somebody whom a page shows it masked. The audit log names who saw it."""
        return reveal(ask, self.actor or "unnamed", jid, part)

    @PlanMethod
    def waiters(self, ask: Planner, *jids: str, show: int = 10) -> Plan[Waiters]:
        """How many jobs wait for some others and are not among them, over any number of steps, and the first of them."""
        return waiters_of(ask, check_names("jid", jids, 1 << 20), check_whole("show", show, 0, MAX_BATCH))

    @CommandMethod
    def undepend(self, jid: str, *parents: str) -> Command[int]:
        """Let a job wait for some jobs no longer; for none of those that it waits for, if none is named.

        Raises JobNotFound, WrongState.
        """
        names = check_names("parent", parents, MAX_BATCH) if parents else []
        return Depend(check_name("jid", jid), names, "remove" if names else "all")

    @StepMethod
    def stack(self, jid: str, timeout: float = PATIENCE) -> Steps[LiveStack]:
        """Where a running job is in its code. Raises JobNotFound, WrongState when it is not running, TimeoutError."""
        found: LiveStack = yield ask_worker(self._client, jid, timeout)
        return found


def queue_names(ask: Planner, given: Sequence[str]) -> Plan[list[str]]:
    """Return the queues of names and globs, each once. A name that is that of a queue is no glob."""
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


def last_jobs(
    ask: Planner, templates: Sequence[RecurringFacts], most: int
) -> Plan[dict[str, tuple[JobRow, ...]]]:
    """Return the last `most` jobs that each recurring job put, by its jid, the newest first."""
    names = {
        one.jid: [f"{one.jid}-{number}" for number in range(one.count, max(one.count - most, 0), -1)]
        for one in templates
    }
    jids = [jid for some in names.values() for jid in some]
    jobs = dict(zip(jids, (yield from found_jobs(ask, jids)) if jids else [], strict=True))
    now = (yield from ask(Info())).now_ms if jids else 0
    return {
        jid: tuple(row_of(facts, now) if (facts := jobs[one]) else JobRow(one, state="gone") for one in some)
        for jid, some in names.items()
    }
