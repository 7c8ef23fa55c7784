"""What operators see and do with queues."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from holdfast.client.descriptors import AnyClient, CommandMethod, PlanMethod
from holdfast.client.put_options import make_put
from holdfast.commands import Command
from holdfast.commands.admin import Audit, Info
from holdfast.commands.queues import GetStats, Pause, QueueForget, QueueOption, QueueSet
from holdfast.commands.recurring import RecurringFacts
from holdfast.console.actions import checked_reason
from holdfast.console.put import NamedCode
from holdfast.console.read import queries, queue_figures
from holdfast.console.read.charts import Steps
from holdfast.console.read.marks import Mark, marks
from holdfast.console.read.queries import Page, QueueDetail
from holdfast.console.read.queue_figures import QueueFigures, QueueJobs
from holdfast.models import Counts, Sample, Stats
from holdfast.settings import MAX_BATCH, check_milliseconds, check_name, check_names, check_whole
from holdfast.wire.plans import Plan, Planner


class QueueVerbs:
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
    def throughput(self, ask: Planner, queues: Sequence[str], range: str = "90m") -> Plan[Steps]:
        """What happened in up to 40 queues together, step by step; `range`: 90m, 24h, 7d or FROM-TO. Raises UsageError."""
        names = check_names("queue", queues, 1 << 40)
        return (yield from queue_figures.throughput(self._client.shard, names, range, (yield from _now(ask))))

    @PlanMethod
    def backlog(self, ask: Planner, queue: str, over: Steps) -> Plan[tuple[int | None, ...]]:
        """How many jobs of a queue waited at the end of each step of a chart; None where it was not noted."""
        return queue_figures.backlog(self._client.shard, check_name("queue", queue), over)

    @PlanMethod
    def marks(self, ask: Planner, found: Steps, queue: str = "") -> Plan[tuple[Mark, ...]]:
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
        """Pause queues, for ever or for so many seconds. Returns how many were not paused."""
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
