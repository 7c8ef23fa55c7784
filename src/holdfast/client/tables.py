"""The methods of a queue, of the queues and of the jobs, for both clients."""

import datetime as days
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, Self, Unpack

from holdfast.client.descriptors import (
    CommandMethod,
    CommandProperty,
    Named,
    PlanMethod,
    PlanProperty,
    SettableProperty,
)
from holdfast.client.jobs.attributes import AttributesVerbs
from holdfast.client.jobs.dependencies import Cancelling
from holdfast.client.lists import ListVerbs
from holdfast.client.put_options import NOTHING, MoreOptions, make_put, name_of
from holdfast.client.recur_options import RecurMore, make_recur
from holdfast.client.throttles import HIGHEST
from holdfast.commands import Command
from holdfast.commands.admin import ConfigGet, ConfigSet
from holdfast.commands.base import then
from holdfast.commands.jobs import JobsComplete
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
from holdfast.models import Counts, Stats
from holdfast.settings import (
    DEFAULT_HEARTBEAT,
    MAX_BATCH,
    MAX_WHOLE,
    OWN_THROTTLE,
    Duration,
    HasJid,
    check_milliseconds,
    check_name,
    check_page,
    check_switch,
    check_text,
    check_whole,
)
from holdfast.wire.plans import Plan, Planner, all_counts, stopped


class QueueStatistics:
    """The statistics of a queue."""

    _client: Any
    name: str

    @CommandMethod
    def tallies(self) -> Command[dict[str, int]]:
        """What happened here since the queue was first used: put, popped, completed, failed, retried, lost, timed_out
        and cancelled. Exact. Core: verbs/stats.lua."""
        return then(Minutes(self.name, 2**53 - 1), lambda lines: lines[-1].as_dict())

    @CommandMethod
    def minutes(self, since: float = 0) -> Command[list[dict[str, Any]]]:
        """The counts of `tallies` from line to line, from epoch second `since` on: dicts with `when`, the end of their time.

        Lines are a minute apart for three hours, ten minutes for the week before; the last one ends now. Core: verbs/stats.lua.
        """
        return then(Minutes(self.name, check_milliseconds("since", since, 0, 2**43)), _steps)


def _steps(lines: list[Tallies]) -> list[dict[str, Any]]:
    return [{"when": now.when_ms / 1000, **now.since(before).as_dict()} for before, now in pairwise(lines)]


class QueuePutting:
    """What a queue can be told to take in."""

    _client: Any
    name: str

    @CommandMethod
    def put(
        self,
        klass: object,
        data: object = NOTHING,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
        delay: Duration | None = None,
        retries: int | None = None,
        jid: str | None = None,
        depends: Iterable[str | HasJid] | None = None,
        throttles: Iterable[str] | None = None,
        **more: Unpack[MoreOptions],
    ) -> Command[str]:
        """Put a job into this queue; answers its jid.

        `klass` is a class, module, function or dotted name; `data` any JSON value, or text that is JSON, `{}` when
        left out. `priority` (0; higher first), `delay` in seconds, `retries` (5), `jid` to choose one: an existing job of
        that jid is moved here, with all this in place of what it had. `only_new=True` leaves an existing job alone. More
        is in `PutOptions`: tags, throttles, depends, backoff, expires, timeout, result_keep. What is not given, or
        None, comes from `default_job_options(data)` of the class, if it has one. Raises UsageError, JobExists, QueueFull,
        DependencyRefused, StoreFull. Core: verbs/put.lua.
        """
        said = _said(more, priority, tags, delay, retries, jid, depends, throttles)
        return make_put(self._client.settings, self.name, klass, data, said)

    @CommandMethod
    def requeue(
        self,
        klass: object,
        data: object = NOTHING,
        priority: int | None = None,
        tags: Iterable[str] | None = None,
        delay: Duration | None = None,
        retries: int | None = None,
        jid: str | None = None,
        depends: Iterable[str | HasJid] | None = None,
        throttles: Iterable[str] | None = None,
        **more: Unpack[MoreOptions],
    ) -> Command[str]:
        """Put a job that exists, of whatever state, into this queue; answers its jid. As `put`, but for `only_new`.

        Raises UsageError, JobNotFound for a jid that no job has. Core: verbs/put.lua.
        """
        said = _said(more, priority, tags, delay, retries, jid, depends, throttles)
        return make_put(self._client.settings, self.name, klass, data, said, must_exist=True)

    @CommandMethod
    def recur(
        self,
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
    ) -> Command[str]:
        """Put a job into this queue every `interval` seconds; answers the jid of the template.

        The first is due `offset` seconds from now (0; negative to make up past ones). Its jobs are `<jid>-1`, `<jid>-2`, …,
        each put at the moment it is due, however late that is noticed; at most `backlog` missed ones are made up, 0 for
        all. A template of the same `jid` is replaced, its count goes on. What is not given, or None, comes from
        `default_job_options(data)` of the class, if it has one; else `priority` is 0, `retries` 5. Raises UsageError.
        Core: verbs/recur.lua.
        """
        said = {
            "interval": interval, "offset": offset, "priority": priority, "tags": tags, "retries": retries, "jid": jid,
            "throttles": throttles, "backlog": backlog, **more,
        }  # fmt: skip
        return make_recur(self._client.settings, self.name, klass, data, said)

    @staticmethod
    def class_string(klass: object) -> str:
        """The name under which jobs of a class, module or function are stored; text stays as it is.

        Raises UsageError for what no other program could import.
        """
        return name_of(klass)


def _said(
    more: Mapping[str, Any],
    priority: int | None,
    tags: Iterable[str] | None,
    delay: Duration | None,
    retries: int | None,
    jid: str | None,
    depends: Iterable[str | HasJid] | None,
    throttles: Iterable[str] | None,
) -> Mapping[str, Any] | None:
    rest = tags is None and depends is None and throttles is None
    if rest and priority is None and delay is None and retries is None and jid is None:
        return more or None
    return {
        "priority": priority, "tags": tags, "delay": delay, "retries": retries, "jid": jid, "depends": depends,
        "throttles": throttles, **more,
    }  # fmt: skip


DAY: Final = 86_400


class QueueVerbs(QueuePutting, QueueStatistics):
    """What a queue can be told and asked."""

    _client: Any

    def __init__(self, name: str, client: Any, worker_name: str | None = None) -> None:
        self.name = check_name("queue", name)
        self._client = client
        self._worker_name = None if worker_name is None else check_name("worker_name", worker_name)

    @classmethod
    def of_job(cls, name: str, client: Any) -> Self:
        """The queue of a job; a completed one is in none, which is a queue named ''."""
        queue = cls.__new__(cls)
        queue.name, queue._client, queue._worker_name = name, client, None
        return queue

    @property
    def worker_name(self) -> str:
        """The name under which this handle pops: the client's, unless one was assigned here."""
        return self._worker_name or self._client.worker_name

    @worker_name.setter
    def worker_name(self, name: str) -> None:
        self._worker_name = check_name("worker_name", name)

    @PlanMethod
    def pause(
        self, ask: Planner, stop_jobs: bool = False, *, why: str = "", who: str = "", seconds: Duration = 0
    ) -> Plan[int]:
        """Hand out nothing from this queue until `unpause`, or for so many `seconds`.

        With `stop_jobs` the leases of its running jobs are taken away too. `who` (the worker name of this client unless
        given) and `why` are shown to people. Core: verbs/pause.lua, verbs/timeout.lua.
        """
        stops, length = check_switch("stop_jobs", stop_jobs), check_milliseconds("seconds", seconds)
        by = check_name("who", who) if who else self._client.worker_name
        answer = yield from ask(Pause((self.name,), True, by, check_text("why", why), length))
        if stops:
            yield from stopped(ask, self.name)
        return answer

    @CommandMethod
    def unpause(self) -> Command[int]:
        """Hand out jobs again. Core: verbs/pause.lua."""
        return Pause((self.name,), False, self._client.worker_name)

    @CommandMethod
    def forget(self) -> Command[int]:
        """Take this queue, which must be empty, off the list of known ones; answers 1 if it was there.

        Raises QueueNotEmpty. Core: verbs/forget.lua.
        """
        return QueueForget((self.name,))

    @CommandProperty
    def counts(self) -> Command[dict[str, Any]]:
        """How many jobs are in which state: a dict. Core: verbs/counts.lua."""
        return then(CountQueues((self.name,)), lambda rows: _counts_of(rows, self.name).as_dict())

    @CommandMethod
    def bounds(self) -> Command[dict[str, int]]:
        """What was set of `max-waiting` and `max-losses`: a dict. Core: verbs/allow.lua."""
        return QueueGet(self.name)

    @CommandMethod
    def set_bound(self, option: QueueOption, value: int | None) -> Command[int]:
        """Bound this queue; None takes the bound away.

        `max-waiting`: puts raise QueueFull while so many of its jobs do not run yet. `max-losses` (0 to 254): a job is
        handed out again so often after lost leases, whatever its retries. Core: verbs/allow.lua.
        """
        least, most = BOUNDS.get(str(option), (0, 0))
        if not most:
            raise UsageError(f"option must be one of {', '.join(BOUNDS)}, not {option!r}")
        return QueueSet(self.name, option, None if value is None else check_whole(option, value, least, most))

    @CommandProperty
    def paused(self) -> Command[bool]:
        """Whether this queue is paused. Core: verbs/counts.lua."""
        return then(CountQueues((self.name,)), lambda rows: _counts_of(rows, self.name).paused)

    @CommandMethod
    def length(self) -> Command[int]:
        """Waiting, running, stalled and scheduled jobs together. Core: verbs/counts.lua."""
        return then(CountQueues((self.name,)), lambda rows: _counts_of(rows, self.name).length)

    @CommandMethod
    def stats(self, date: float | days.date | str | None = None) -> Command[dict[str, Any]]:
        """How long jobs waited and ran on the UTC day of `date`: epoch seconds, a date, ISO text; default today.

        `retried` are runs that ended in an exception and are repeated, `lost` (for older programs `retries`) lost leases,
        `failures` jobs that failed, `failed` those that still are.

        Core: verbs/stats.lua.
        """
        return then(GetStats(self.name, _day_ms(date)), Stats.as_dict)

    def _ask_heartbeat(self) -> Command[int]:
        """Seconds a worker may be silent before its lease ends. Core: verbs/configure.lua."""
        keys = (f"{self.name}-heartbeat", "heartbeat")
        return then(ConfigGet(keys), lambda found: _seconds_of(found[keys[0]], found[keys[1]]))

    def _tell_heartbeat(self, seconds: int) -> Command[bool]:
        """Let workers of this queue be silent for 1 to 86,400 seconds. Core: verbs/configure.lua."""
        return ConfigSet(f"{self.name}-heartbeat", str(check_whole("heartbeat", seconds, 1, DAY)))

    heartbeat = SettableProperty(_ask_heartbeat, _tell_heartbeat)
    set_heartbeat = CommandMethod(_tell_heartbeat)

    def _ask_max_concurrency(self) -> Command[int]:
        """How many of its jobs may run at once, 0 for any number: the maximum of `throttle`. Core: verbs/throttle.lua."""
        return then(ThrottleGet(OWN_THROTTLE + self.name), lambda facts: facts.maximum)

    def _tell_max_concurrency(self, maximum: int) -> Command[int]:
        """Let at most so many of its jobs run at once, 0 for any number. Core: verbs/throttle.lua."""
        return ThrottleSet(OWN_THROTTLE + self.name, check_whole("max_concurrency", maximum, 0, HIGHEST), 0)

    max_concurrency = SettableProperty(_ask_max_concurrency, _tell_max_concurrency)
    set_max_concurrency = CommandMethod(_tell_max_concurrency)

    def _pop_count(self, count: int | None) -> int:
        return 1 if count is None else check_whole("count", count, 0, MAX_BATCH)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __eq__(self, other: object) -> bool:
        # A queue equals its name, because older programs compare `job.queue` with text.
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
    """The first that is a number, as the core reads them."""
    for setting in settings:
        try:
            return int(float(setting or ""))
        except (ValueError, OverflowError):
            continue
    return int(DEFAULT_HEARTBEAT)


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
    """What can be asked of all queues."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

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


class JobsVerbs(ListVerbs, AttributesVerbs, Cancelling, Named):
    """What can be asked of jobs by jid or state."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @CommandMethod
    def complete(self, offset: int = 0, count: int = 25) -> Command[list[str]]:
        """The jids of completed jobs, newest first. Core: verbs/inspect.lua."""
        return JobsComplete(*check_page(offset, count))
