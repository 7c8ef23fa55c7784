"""Calls about many things at once, and calls of operators: bulk actions, settings, upkeep, the audit log."""

from collections.abc import Iterable
from typing import Any, Final

from holdfast.client.descriptors import AsyncHandle, Planned, SyncHandle, Verb
from holdfast.client.tables import QueueVerbs
from holdfast.commands import Command
from holdfast.commands.admin import (
    Audit,
    AuditLine,
    AuditList,
    SettingSet,
    SettingsGet,
    Sweep,
    Watch,
)
from holdfast.commands.base import then
from holdfast.commands.failures import Failed
from holdfast.commands.views import Tick
from holdfast.commands.workers import WorkerForget
from holdfast.errors import UsageError
from holdfast.settings import (
    MAX_BATCH,
    MAX_WHOLE,
    check_list,
    check_milliseconds,
    check_name,
    check_queue,
    check_text,
    check_whole,
)
from holdfast.wire.cancelling import cancel_jobs
from holdfast.wire.plans import Ask, Plan, failed_counts, found_jobs, unfailed

MOST_AT_ONCE: Final = 1_000_000
_LOOKED_AT: Final = 25
"""How many jobs of a failure group are looked at for one that is still kept."""


class ChoresVerbs:
    """Worn by the clients themselves: `client.bulk_cancel(…)`."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Planned
    def deregister_workers(self, ask: Ask, *names: str) -> Plan[int]:
        """Take workers off the list of known ones; answers how many were there.

        What they hold stays theirs, and one that is alive comes back with its next sign of life. Raises UsageError.
        Core: nouns/worker.lua.
        """
        known = [check_name("worker", name) for name in names]
        gone = 0
        for at in range(0, len(known), MAX_BATCH):
            gone += yield from ask(WorkerForget(known[at : at + MAX_BATCH]))
        return gone

    @Planned
    def bulk_cancel(self, ask: Ask, jids: Iterable[str]) -> Plan[list[str]]:
        """Cancel many jobs, also those that wait for each other; answers the jids.

        Up to 512 go in one atomic call; a larger set goes leaves first, each call closed in itself. Unknown and
        complete jobs are no error. Raises UsageError, DependencyRefused. Core: verbs/cancel.lua.
        """
        names = [check_name("jids", jid) for jid in check_list("jids", jids)]
        if names:
            yield from cancel_jobs(self._client.shard, ask, names, self._client.worker_name, dependents=False)
        return names

    @Planned
    def unfail_all(self, ask: Ask, batch_size: int = 10_000) -> Plan[int]:
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


def _queue_of(ask: Ask, group: str) -> Plan[str]:
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

    @Verb
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


MOST_LINES = 128


class AuditVerbs:
    """Who did what to what: the newest ten thousand lines or a few more."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Verb
    def add(self, what: str, target: str = "", detail: str = "", who: str = "") -> Command[str]:
        """Write a line; answers its id. `detail` has up to 4096 bytes. Core: nouns/audit.lua."""
        names = check_name("who", who) if who else self._client.worker_name, check_name("what", what)
        return Audit(*names, check_name("target", target) if target else "", check_text("detail", detail))

    @Verb
    def newest(self, count: int = 25, before: str = "") -> Command[list[AuditLine]]:
        """Up to 128 lines, newest first; `before`: only those older than the line of this id.

        Core: nouns/audit.lua.
        """
        return AuditList(
            check_name("before", before) if before else "", check_whole("count", count, 0, MOST_LINES)
        )


class UpkeepVerbs:
    """Settings that are no configuration keys, and chores that calls do by themselves as they come along."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Verb
    def settings(self) -> Command[dict[str, int]]:
        """`stats-days` (statistics are kept so long), `keep-data` (1: what attempts began with is kept where it changed),
        `max-history-bytes` (of a job), `max-queues`, `max-data` (bytes with which a job is put) and `unknown-for`.
        Core: nouns/settings.lua.
        """
        return SettingsGet()

    @Verb
    def set(self, name: str, value: int | None) -> Command[int]:
        """Write one of them; None for its default. Raises Refused for a value out of bounds. Core: nouns/settings.lua."""
        number = None if value is None else check_whole("value", value, 0, MAX_WHOLE)
        return SettingSet(check_name("name", name), number)

    @Verb
    def sweep(self) -> Command[int]:
        """Drop completed jobs that are too old, as later completions would; answers how many this call dropped.

        Core: verbs/configure.lua.
        """
        return Sweep()

    @Verb
    def tick(self, *queues: str) -> Command[int]:
        """Note the minute of up to 128 queues, which otherwise pops do; answers how many. Core: verbs/minutes.lua."""
        if not 1 <= len(queues) <= MOST_LINES:
            raise UsageError(f"tick takes 1 to {MOST_LINES} queues in one call, not {len(queues)}")
        return Tick([check_queue("queue", queue) for queue in check_list("queues", queues)])

    @Verb
    def watch(self, seconds: float = 10) -> Command[float]:
        """Have changes published on `<root>e:c` for so many seconds, a minute at most; answers until when, as epoch seconds.

        A message names what changed: `queues`, `queue:<name>`, `job:<jid>`, `failed`, … Core: verbs/watch.lua.
        """
        return then(
            Watch(check_milliseconds("seconds", seconds, 0.001, 60)), lambda until_ms: until_ms / 1000
        )


class Upkeep(UpkeepVerbs, SyncHandle):
    """The upkeep of a blocking client."""


class AsyncUpkeep(UpkeepVerbs, AsyncHandle):
    """The upkeep of an async client."""


class AuditLog(AuditVerbs, SyncHandle):
    """The audit log of a blocking client."""


class AsyncAuditLog(AuditVerbs, AsyncHandle):
    """The audit log of an async client."""
