"""What a client does to many things at once, and `client.stats`: said once for both colours."""

from collections.abc import Iterable
from typing import Any, Final

from holdfast.client.descriptors import AsyncHandle, CommandMethod, PlanMethod, SyncHandle
from holdfast.client.tables import QueueVerbs
from holdfast.commands import Command
from holdfast.commands.failures import Failed
from holdfast.commands.workers import WorkerForget
from holdfast.settings import MAX_BATCH, check_list, check_name, check_queue, check_whole
from holdfast.wire.cancelling import cancel_jobs
from holdfast.wire.plans import Plan, Planner, failed_counts, found_jobs, unfailed

MOST_AT_ONCE: Final = 1_000_000
_LOOKED_AT: Final = 25
"""How many jobs of a failure group are looked at for one that is still kept."""


class ChoresVerbs:
    """Worn by the clients themselves: `client.bulk_cancel(…)`."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @PlanMethod
    def deregister_workers(self, ask: Planner, *names: str) -> Plan[int]:
        """Take workers off the list of known ones; answers how many were there.

        What they hold stays theirs, and one that is alive comes back with its next sign of life. Raises UsageError.
        Core: nouns/worker.lua.
        """
        known = [check_name("worker", name) for name in names]
        gone = 0
        for at in range(0, len(known), MAX_BATCH):
            gone += yield from ask(WorkerForget(known[at : at + MAX_BATCH]))
        return gone

    @PlanMethod
    def bulk_cancel(self, ask: Planner, jids: Iterable[str]) -> Plan[list[str]]:
        """Cancel many jobs, also those that wait for each other; answers the jids.

        Up to 512 go in one atomic call; a larger set goes leaves first, each call closed in itself. Unknown and
        complete jobs are no error. Raises UsageError, DependencyRefused. Core: verbs/cancel.lua.
        """
        names = [check_name("jids", jid) for jid in check_list("jids", jids)]
        if names:
            yield from cancel_jobs(self._client.shard, ask, names, self._client.worker_name, dependents=False)
        return names

    @PlanMethod
    def unfail_all(self, ask: Planner, batch_size: int = 10_000) -> Plan[int]:
        """Put all failed jobs back to work, each group into the queue of its first job; answers how many.

        The first is the newest failure. Goes in steps of up to `batch_size` jobs, the oldest failures first; what
        fails meanwhile stays failed. Raises UsageError, StoreFull. Core: verbs/unfail.lua.
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
    """The queue of a group's first job, '' if the group is empty by now."""
    _, jids = yield from ask(Failed(group, 0, _LOOKED_AT))
    for facts in (yield from found_jobs(ask, jids)):
        if facts is not None:
            return facts.queue
    return ""


class StatsVerbs:
    """What happened in queues, by name: `client.stats.get("mail")`."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @CommandMethod
    def get(self, queue: str, date: Any = None) -> Command[dict[str, Any]]:
        """How long jobs of `queue` waited and ran on the UTC day of `date`, as `queue.stats(date)` says it.

        Core: verbs/stats.lua.
        """
        return QueueVerbs.stats.make(self._client.queues[check_queue("queue", queue)], date)


class Chores(ChoresVerbs, SyncHandle):
    """The chores of a blocking client."""


class AsyncChores(ChoresVerbs, AsyncHandle):
    """The chores of an async client."""


class StatsOf(StatsVerbs, SyncHandle):
    """The statistics of a blocking client."""


class AsyncStatsOf(StatsVerbs, AsyncHandle):
    """The statistics of an async client."""
