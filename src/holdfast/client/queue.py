"""The methods of a queue and of all queues, for both clients."""

import datetime as days
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, Generic, Self, TypeVar, Unpack

from holdfast.client.bulk import QueueBulk
from holdfast.client.descriptors import (
    AnyClient,
    ClientPart,
    CommandMethod,
    CommandProperty,
    Named,
    PlanMethod,
    PlanProperty,
    SettableProperty,
    heartbeat_of,
    run_plan,
)
from holdfast.client.jobs.verbs import JobVerbs
from holdfast.client.plans import all_counts, peeked_jobs, stopped, time_of
from holdfast.client.put_options import NOTHING, QueuePuts
from holdfast.client.recur_options import RecurMore, make_recur
from holdfast.client.throttles import HIGHEST
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.admin import ConfigGet, ConfigSet
from holdfast.commands.base import map_reply
from holdfast.commands.leases import Pop
from holdfast.commands.queues import (
    BOUNDS,
    CountQueues,
    GetStats,
    Pause,
    QueueForget,
    QueueGet,
    QueueNames,
    QueueOption,
    QueueSet,
    ThrottleGet,
    ThrottleSet,
)
from holdfast.commands.views import Minutes, Tallies
from holdfast.errors import UsageError
from holdfast.models import Counts, JobFacts, Stats
from holdfast.settings import (
    DEFAULT_HEARTBEAT,
    MAX_BATCH,
    MAX_WHOLE,
    OWN_THROTTLE,
    Duration,
    check_milliseconds,
    check_name,
    check_page,
    check_queue,
    check_switch,
    check_text,
    check_whole,
)
from holdfast.wire.plans import Plan, Planner

J = TypeVar("J", bound=JobVerbs)
"""The class of jobs of a client: `Job` or `AsyncJob`."""


class QueueStatistics:
    """Counts of what happened in a queue."""

    name: str

    @CommandMethod
    def tallies(self) -> Command[dict[str, int]]:
        """What happened here since the queue was first used: put, popped, completed, failed, retried, lost, timed_out
        and cancelled. Exact. Core: verbs/stats.lua."""
        return map_reply(Minutes(self.name, 2**53 - 1), lambda lines: lines[-1].as_dict())

    @CommandMethod
    def minutes(self, since: float = 0) -> Command[list[dict[str, Any]]]:
        """What happened here in each period, from epoch second `since` on: dicts of `when`, the end of the period, and the
        counts of `tallies`.

        Periods are a minute long for three hours, ten minutes for the week before; the last ends now.
        Core: verbs/stats.lua.
        """
        return map_reply(Minutes(self.name, check_milliseconds("since", since, 0, 2**43)), _steps)


def _steps(lines: list[Tallies]) -> list[dict[str, object]]:
    return [{"when": now.when_ms / 1000, **now.since(before).as_dict()} for before, now in pairwise(lines)]


DAY: Final = 86_400


class QueueVerbs(QueuePuts, QueueBulk, QueueStatistics, Generic[J]):
    """The methods of a queue."""

    _job_class: type[J]

    def __init__(self, name: str, client: AnyClient, worker_name: str | None = None) -> None:
        self.name = check_name("queue", name)
        self._client = client
        self._worker_name = None if worker_name is None else check_name("worker_name", worker_name)

    @classmethod
    def of_job(cls, name: str, client: AnyClient) -> Self:
        """Return the queue of a job; a queue named '' for a completed job, which is in none."""
        queue = cls.__new__(cls)
        queue.name, queue._client, queue._worker_name = name, client, None
        return queue

    @property
    def worker_name(self) -> str:
        """The name under which this handle pops: the client's, unless another is assigned."""
        return self._worker_name or self._client.worker_name

    @worker_name.setter
    def worker_name(self, name: str) -> None:
        self._worker_name = check_name("worker_name", name)

    @PlanMethod
    def recur(
        self,
        ask: Planner,
        klass: object,
        data: object = NOTHING,
        interval: Duration | None = None,
        offset: Duration | None = None,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
        retries: int | None = None,
        jid: str | None = None,
        throttles: Iterable[str] | None = None,
        backlog: int | None = None,
        **more: Unpack[RecurMore],
    ) -> Plan[str]:
        """Put a job into this queue every `interval` seconds, or at the moments of a calendar (`cron`); return the jid of the template.

        The first is due `offset` seconds from now (0; negative to make up past ones). Its jobs are `<jid>-1`, `<jid>-2`, …,
        each put as of the moment it was due; at most `backlog` missed ones are made up, 0 for
        all. A template of the same `jid` is replaced and keeps its count. What is not given, or None, comes from
        `default_job_options(data)` of the class, if it has one; else `priority` is 0, `retries` 5. Raises UsageError.
        Core: verbs/recur.lua.
        """
        options = {
            "interval": interval, "offset": offset, "priority": priority, "tags": tags, "retries": retries, "jid": jid,
            "throttles": throttles, "backlog": backlog, **more,
        }  # fmt: skip
        now = (yield from time_of(self._client.shard)) if options.get("cron") is not None else 0.0
        return (yield from ask(make_recur(self._client.settings, self.name, klass, data, options, now)))

    def _pop(self, count: int | None) -> Steps[J | list[J] | None]:
        limit = 1 if count is None else check_whole("count", count, 0, MAX_BATCH)
        found: list[JobFacts] = []
        if limit:
            heartbeat = heartbeat_of(self._client, self.worker_name)
            if heartbeat is not None:
                yield self._client.run(heartbeat)
            found = yield self._client.run(Pop(self.worker_name, (self.name,), limit))
        return self._one_or_all(found, count)

    def _peek(self, offset: int | None, count: int | None) -> Steps[J | list[J] | None]:
        first, limit = check_page(offset or 0, 1 if count is None else count)
        found = yield run_plan(self._client, peeked_jobs, self.name, first, limit)
        return self._one_or_all(found, count)

    def _one_or_all(self, found: Iterable[JobFacts], count: int | None) -> J | list[J] | None:
        jobs = [self._job_class.of(facts, self._client) for facts in found]
        return jobs if count is not None else jobs[0] if jobs else None

    @PlanMethod
    def pause(
        self, ask: Planner, stop_jobs: bool = False, *, why: str = "", who: str = "", seconds: Duration = 0
    ) -> Plan[int]:
        """Let workers take no jobs from this queue until `unpause`, or for `seconds`.

        With `stop_jobs` the leases of its running jobs are taken away too. `who` (default: the worker name of this
        client) and `why` are shown to people. Core: verbs/pause.lua, verbs/timeout.lua.
        """
        stops, length = check_switch("stop_jobs", stop_jobs), check_milliseconds("seconds", seconds)
        by = check_name("who", who) if who else self._client.worker_name
        changed = yield from ask(Pause((self.name,), True, by, check_text("why", why), length))
        if stops:
            yield from stopped(ask, self.name)
        return changed

    @CommandMethod
    def unpause(self) -> Command[int]:
        """Let workers take jobs again. Core: verbs/pause.lua."""
        return Pause((self.name,), False, self._client.worker_name)

    @CommandMethod
    def forget(self) -> Command[int]:
        """Remove this queue, which must be empty, from the list of queues; return 1 if it was listed.

        Raises QueueNotEmpty. Core: verbs/forget.lua.
        """
        return QueueForget((self.name,))

    @CommandProperty
    def counts(self) -> Command[dict[str, Any]]:
        """How many jobs are in which state: a dict. Core: verbs/counts.lua."""
        return map_reply(CountQueues((self.name,)), lambda rows: _counts_of(rows, self.name).as_dict())

    @CommandMethod
    def bounds(self) -> Command[dict[str, int]]:
        """Those of `max-waiting` and `max-losses` that are set: a dict. Core: verbs/allow.lua."""
        return QueueGet(self.name)

    @CommandMethod
    def set_bound(self, option: QueueOption, value: int | None) -> Command[int]:
        """Set a limit of this queue; None removes it.

        `max-waiting`: puts raise QueueFull while this number of jobs has not started. `max-losses` (0 to 254): how often a
        job is granted again after lost leases, whatever its retries. Core: verbs/allow.lua.
        """
        least, most = BOUNDS.get(str(option), (0, 0))
        if not most:
            raise UsageError(f"option must be one of {', '.join(BOUNDS)}, not {option!r}")
        return QueueSet(self.name, option, None if value is None else check_whole(option, value, least, most))

    @CommandProperty
    def paused(self) -> Command[bool]:
        """Whether this queue is paused. Core: verbs/counts.lua."""
        return map_reply(CountQueues((self.name,)), lambda rows: _counts_of(rows, self.name).paused)

    @CommandMethod
    def length(self) -> Command[int]:
        """Waiting, running, stalled and scheduled jobs together. Core: verbs/counts.lua."""
        return map_reply(CountQueues((self.name,)), lambda rows: _counts_of(rows, self.name).length)

    @CommandMethod
    def stats(self, date: float | days.date | str | None = None) -> Command[dict[str, Any]]:
        """How long jobs waited and ran on the UTC day of `date`: epoch seconds, a date, ISO text; default today.

        `retried` are runs that ended in an exception and are repeated, `lost` (for older programs `retries`) lost leases,
        `failures` jobs that failed, `failed` those that still are.

        Core: verbs/stats.lua.
        """
        return _stats_of(self.name, date)

    def _heartbeat(self) -> Command[int]:
        """Seconds without a heartbeat after which a lease ends. Core: verbs/configure.lua."""
        keys = (f"{self.name}-heartbeat", "heartbeat")
        return map_reply(ConfigGet(keys), lambda found: _seconds_of(found[keys[0]], found[keys[1]]))

    def _set_heartbeat(self, seconds: int) -> Command[bool]:
        """Set the seconds without a heartbeat after which a lease ends, 1 to 86,400. Core: verbs/configure.lua."""
        return ConfigSet(f"{self.name}-heartbeat", str(check_whole("heartbeat", seconds, 1, DAY)))

    heartbeat = SettableProperty(_heartbeat, _set_heartbeat)
    set_heartbeat = CommandMethod(_set_heartbeat)

    def _max_concurrency(self) -> Command[int]:
        """How many of its jobs may run at once, 0 for no limit: the maximum of `throttle`. Core: verbs/throttle.lua."""
        return map_reply(ThrottleGet(OWN_THROTTLE + self.name), lambda facts: facts.maximum)

    def _set_max_concurrency(self, maximum: int) -> Command[int]:
        """Set how many of its jobs may run at once, 0 for no limit. Core: verbs/throttle.lua."""
        return ThrottleSet(OWN_THROTTLE + self.name, check_whole("max_concurrency", maximum, 0, HIGHEST), 0)

    max_concurrency = SettableProperty(_max_concurrency, _set_max_concurrency)
    set_max_concurrency = CommandMethod(_set_max_concurrency)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __eq__(self, other: object) -> bool:
        # A queue equals its name: older programs compare `job.queue` with text.
        if isinstance(other, str):
            return self.name == other
        if type(other) is not type(self):
            return False
        return self.name == other.name and bool(self._client == other._client)

    def __hash__(self) -> int:
        return hash(self.name)


def _counts_of(rows: list[Counts], name: str) -> Counts:
    return rows[0] if rows else Counts(name)


def _seconds_of(*settings: str | None) -> int:
    """Return the first setting that is a number, as the core does."""
    for setting in settings:
        try:
            return int(float(setting or ""))
        except (ValueError, OverflowError):
            continue
    return int(DEFAULT_HEARTBEAT)


def _stats_of(queue: str, date: float | days.date | str | None) -> Command[dict[str, object]]:
    return map_reply(GetStats(queue, _day_ms(date)), Stats.as_dict)


def _day_ms(moment: float | days.date | str | None) -> int:
    if moment is None:
        return 0
    try:
        if isinstance(moment, str):
            moment = days.date.fromisoformat(moment[:10])
        if isinstance(moment, days.datetime):
            return round(moment.timestamp() * 1000)
        if isinstance(moment, days.date):
            return round(days.datetime.combine(moment, days.time(), days.UTC).timestamp() * 1000)
        return check_milliseconds("date", float(moment), 0, MAX_WHOLE / 1000)
    except (ValueError, OverflowError, TypeError) as error:
        raise UsageError(f"date must be epoch seconds, a date or ISO text, not {moment!r}") from error


class QueuesVerbs(Named):
    """The methods of all queues together."""

    @PlanProperty
    def counts(self, ask: Planner) -> Plan[list[dict[str, Any]]]:
        """Every known queue with its jobs by state, in order of first use; up to 256 queues are one call.

        Core: verbs/counts.lua.
        """
        rows = yield from all_counts(ask)
        return [row.as_dict() for row in rows]

    @CommandProperty
    def names(self) -> Command[list[str]]:
        """The names of all known queues, in order of first use. Core: verbs/inspect.lua."""
        return QueueNames()


class StatsVerbs(ClientPart):
    """Statistics of queues by name: `client.stats.get("mail")`."""

    @CommandMethod
    def get(self, queue: str, date: float | days.date | str | None = None) -> Command[dict[str, Any]]:
        """How long jobs of `queue` waited and ran on the UTC day of `date`, as `queue.stats(date)`.

        Core: verbs/stats.lua.
        """
        return _stats_of(check_queue("queue", queue), date)
