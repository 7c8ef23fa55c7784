"""The methods of jobs by jid and state, of lists, and of the client itself, for both clients."""

from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar, cast

from holdfast.client.cancelling import cancel_jobs
from holdfast.client.descriptors import (
    AnyClient,
    AsyncMethods,
    CommandMethod,
    Named,
    PlanMethod,
    StepMethod,
    SyncMethods,
    run_plan,
)
from holdfast.client.explanation import Explanation, explained
from holdfast.client.jobs.attributes import AttributesVerbs
from holdfast.client.jobs.dependencies import Cancelling
from holdfast.client.jobs.verbs import JobVerbs
from holdfast.client.plans import (
    all_failure_groups,
    failed_counts,
    failed_jobs,
    found_jobs,
    tracked_jobs,
    unfailed,
)
from holdfast.client.stacks import LiveStack, ask_worker
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.failures import Failed, FailureGroup
from holdfast.commands.jobs import JobGet, JobsComplete
from holdfast.commands.recurring import RecurGet
from holdfast.commands.views import NAMELESS, SETS, Cursor, Direction, ListSet, Page
from holdfast.commands.workers import WorkerForget
from holdfast.errors import UsageError
from holdfast.models import JobFacts
from holdfast.settings import (
    MAX_BATCH,
    MAX_WHOLE,
    check_each,
    check_list,
    check_name,
    check_page,
    check_whole,
)
from holdfast.wire.plans import Plan, Planner

J = TypeVar("J", bound=JobVerbs)
"""The class of jobs of a client: `Job` or `AsyncJob`."""


def _view(state: str, doc: str) -> PlanMethod[..., list[str]]:
    def make(view: Any, ask: Planner, offset: int = 0, count: int = 25) -> Plan[list[str]]:
        return listed(ask, state, view.name, *check_page(offset, count))

    make.__name__ = state
    make.__doc__ = doc + " Skips the first `offset`, returns up to `count` (25). Core: verbs/list.lua."
    return PlanMethod(make)


class QueueJobsVerbs:
    """The jids of one queue by state, the earliest first. `queue.peek` shows waiting jobs."""

    _client: AnyClient

    def __init__(self, name: str, client: AnyClient) -> None:
        self.name = name
        self._client = client

    running = _view("running", "Running jobs, the lease that ends first before the others.")
    stalled = _view("stalled", "Jobs whose lease has ended, the one that ended first before the others.")
    scheduled = _view("scheduled", "Jobs that are due later, the next one first.")
    depends = _view("depends", "Jobs that wait for other jobs, the one that has waited longest first.")
    throttled = _view("throttled", "Jobs that wait for a throttle, the one that has waited longest first.")
    recurring = _view("recurring", "Recurring jobs of this queue, the one that is due next first.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class QueueJobs(QueueJobsVerbs, SyncMethods):
    """The jobs of a queue of a sync client: `queue.jobs.running()`."""


class AsyncQueueJobs(QueueJobsVerbs, AsyncMethods):
    """The jobs of a queue of an async client: `await queue.jobs.running()`."""


def listed(
    ask: Planner, set: str, name: str = "", offset: int = 0, count: int = MAX_WHOLE
) -> Plan[list[str]]:
    """Return up to `count` names of a set from place `offset` on, each once.

    They are read in pages: a page begins behind a member, not at a place.
    """
    found: dict[str, None] = {}
    seen, after = 0, None
    while seen < offset + count:
        page = yield from ask(ListSet(set, name, after, min(offset + count - seen, MAX_BATCH)))
        found.update(dict.fromkeys(page.names[max(offset - seen, 0) :]))
        seen, after = seen + len(page.names), page.next
        if after is None:
            break
    return list(found)


MOST_AT_ONCE: Final = 1_000_000


class ListVerbs:
    """Methods that list jobs and explain them."""

    _client: AnyClient

    @CommandMethod
    def listing(
        self,
        set: str,
        name: str = "",
        after: Cursor | None = None,
        count: int = 100,
        *,
        direction: Direction = "",
    ) -> Command[Page]:
        """One page of a set, up to 512 entries, after the cursor `after`; its `next` is the cursor of the following page.

        `set` is waiting, running, stalled, scheduled, depends, throttled, recurring or failed (of the queue `name`), group
        (a failure group), tagged (a tag), holders or pending (of a throttle), queued or reserved (messages of a topic),
        completed, tracked, workers, queues or topics.
        Waiting jobs come in the order of pops. `direction` is `up` or `down`; by default that of the set: the newest
        first for failed, completed and tracked jobs. Raises UsageError. Core: verbs/list.lua.
        """
        if not isinstance(set, str) or set not in SETS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"there is no set {set!r}: name one of {', '.join(sorted(SETS))}")
        whose = "" if set in NAMELESS else check_name("name", name)
        return ListSet(
            set,
            whose,
            check_cursor(after),
            check_whole("count", count, 1, MAX_BATCH),
            check_direction(direction),
        )

    @CommandMethod
    def explain(self, jid: str) -> Command[Explanation]:
        """Explain why a job is running or not: its state, one sentence, and ordered checks, all of one instant.

        For a job that does not exist, `exists` is False; no error is raised. Raises UsageError. Core: verbs/explain.lua.
        """
        return explained(check_name("jid", jid), self._client.settings.flags)

    @PlanMethod
    def failure_groups(self, ask: Planner) -> Plan[list[FailureGroup]]:
        """Every failure group, the latest failure first: its size, first and last failure, newest jid, and how many
        failed in each of the last 48 hours. Core: verbs/inspect.lua.
        """
        return all_failure_groups(ask)

    @PlanMethod
    def unfail(self, ask: Planner, group: str, queue: str, count: int = 500) -> Plan[int]:
        """Put up to `count` failed jobs of `group` into `queue`, the oldest failures first; return how many.

        Their retries are renewed; priority, data and history stay. Raises UsageError, StoreFull. Core: verbs/unfail.lua.
        """
        check_whole("count", count, 1, MOST_AT_ONCE)
        return unfailed(ask, check_name("queue", queue), check_name("group", group), count)


class JobsVerbs(ListVerbs, AttributesVerbs, Cancelling, Named, Generic[J]):
    """The methods of all jobs together, by jid or state."""

    _job_class: type[J]

    @CommandMethod
    def complete(self, offset: int = 0, count: int = 25) -> Command[list[str]]:
        """The jids of completed jobs, newest first. Core: verbs/inspect.lua."""
        return JobsComplete(*check_page(offset, count))

    @StepMethod
    def get(self, *jids: str) -> Steps[list[J]]:
        """The jobs that exist, in the order of `jids`. Core: verbs/inspect.lua."""
        found = yield run_plan(self._client, found_jobs, check_each("jid", jids))
        return [self._job_class.of(facts, self._client) for facts in found if facts is not None]

    multiget = get

    @StepMethod
    def stack(self, jid: str, timeout: float = 5.0) -> Steps[LiveStack]:
        """Ask the worker where a running job is in its code; `str()` of the result is the stack, innermost frame last.

        This works for code that blocks its process too: then the stacks of all threads that perform jobs there are
        returned. Raises JobNotFound, WrongState when the job is not running, TimeoutError. Core: nouns/event/event.lua.
        """
        found: LiveStack = yield ask_worker(self._client, jid, timeout)
        return found

    @StepMethod
    def tracked(self) -> Steps[dict[str, Any]]:
        """The tracked `jobs`, longest tracked first, and the `expired` jids, whose jobs are gone.

        Without any, `expired` is {}, as older programs expect. Core: verbs/track.lua.
        """
        jobs, expired = yield run_plan(self._client, tracked_jobs)
        return {"jobs": [self._job_class.of(facts, self._client) for facts in jobs], "expired": expired or {}}

    def _failed(self, group: str | None, start: int, limit: int) -> Steps[dict[str, object]]:
        client = self._client
        if group is None:
            return dict((yield run_plan(client, failed_counts)))
        page = check_page(start, limit, ("start", "limit"))
        total, jobs = yield run_plan(client, failed_jobs, check_name("group", group), *page)
        return {"total": total, "jobs": [self._job_class.of(facts, client) for facts in jobs]}

    def _find(self, jid: str) -> Steps[Any]:
        [facts] = yield self._client.run(JobGet((jid,)))
        if facts is not None:
            return self._job_class.of(facts, self._client)
        [template] = yield self._client.run(RecurGet((jid,)))
        return self._client.recurring._of(template)

    def _of(self, facts: JobFacts | None) -> J | None:
        return None if facts is None else self._job_class.of(facts, self._client)


_READ_AT_ONCE: Final = 25
"""How many jobs of a failure group are read to find one that is still kept."""


class ClientVerbs:
    """Methods of the clients themselves."""

    _client: AnyClient

    track = JobsVerbs.track
    untrack = JobsVerbs.untrack
    tags = JobsVerbs.tags
    unfail = JobsVerbs.unfail

    @PlanMethod
    def deregister_workers(self, ask: Planner, *names: str) -> Plan[int]:
        """Remove workers from the list of workers; return how many were listed.

        They keep their leases, and one that is alive is listed again with its next heartbeat. Raises UsageError.
        Core: nouns/lease/worker.lua.
        """
        known = [check_name("worker", name) for name in names]
        gone = 0
        for at in range(0, len(known), MAX_BATCH):
            gone += yield from ask(WorkerForget(known[at : at + MAX_BATCH]))
        return gone

    @PlanMethod
    def bulk_cancel(self, ask: Planner, jids: Iterable[str]) -> Plan[list[str]]:
        """Cancel many jobs, also those that wait for each other; return the jids.

        Up to 512 are one atomic call; of more, those on which no other depends are cancelled first. Unknown and
        complete jobs are ignored. Raises UsageError, DependencyRefused. Core: verbs/cancel.lua.
        """
        names = [check_name("jids", jid) for jid in check_list("jids", jids)]
        if names:
            yield from cancel_jobs(self._client.shard, ask, names, self._client.worker_name, dependents=False)
        return names

    @PlanMethod
    def unfail_all(self, ask: Planner, batch_size: int = 10_000) -> Plan[int]:
        """Put all failed jobs back, each group into the queue of its newest failure; return how many.

        This takes steps of up to `batch_size` jobs, the oldest failures first; jobs that
        fail meanwhile stay failed. Raises UsageError, StoreFull. Core: verbs/unfail.lua.
        """
        size = check_whole("batch_size", batch_size, 1, MOST_AT_ONCE)
        moved = 0
        for group, count in (yield from failed_counts(ask)).items():
            queue = yield from _queue_of(ask, group)
            while queue and count > 0:
                step = yield from unfailed(ask, queue, group, min(size, count))
                if not step:
                    break
                moved, count = moved + step, count - step
        return moved


def _queue_of(ask: Planner, group: str) -> Plan[str]:
    """Return the queue of a group's first job, '' if the group is empty by now."""
    _, jids = yield from ask(Failed(group, 0, _READ_AT_ONCE))
    for facts in (yield from found_jobs(ask, jids)):
        if facts is not None:
            return facts.queue
    return ""


def check_direction(direction: Direction) -> Direction:
    """Return `direction` if a list can be read in it; "" is the direction of the list. Raises UsageError."""
    if direction not in ("", "up", "down"):
        raise UsageError(f"direction is up or down, not {direction!r}")
    return direction


def check_cursor(after: object) -> Cursor | None:
    """Return a cursor, the `next` of a page: a score and a name. Raises UsageError."""
    if after is None:
        return None
    pair: tuple[object, ...] = tuple(cast("Any", after)) if isinstance(after, (tuple, list)) else ()
    if len(pair) != 2:
        raise UsageError(f"after is the next of a page, a score and a name, not {after!r:.80}")
    return check_name("after", pair[0]), check_name("after", pair[1])
