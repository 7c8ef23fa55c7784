"""Recurring jobs, for both clients: `client.recurring[jid]`."""

import logging
from collections.abc import Callable, Container, Mapping
from datetime import datetime
from random import sample
from time import monotonic, time
from typing import Any, Final, Generic, NoReturn, TypeVar, Unpack

import msgspec

from holdfast.client.descriptors import (
    AnyClient,
    AsyncMethods,
    CommandMethod,
    Named,
    PlanMethod,
    PlanProperty,
    SettableFact,
    StepMethod,
    SyncMethods,
)
from holdfast.client.jobs.facts import JidHandle, Local, imported
from holdfast.client.recur_options import Changes, make_update
from holdfast.code.calendar import LEAST_SECONDS, Calendar, check_cron, moment_of, tz_version
from holdfast.code.steps import Steps
from holdfast.commands import Command
from holdfast.commands.base import map_reply
from holdfast.commands.jobs import JobGet
from holdfast.commands.recurring import (
    CalendarFacts,
    RecurCancel,
    RecurExtend,
    RecurGet,
    RecurPause,
    RecurringFacts,
    RecurRun,
    RecurTag,
    RecurUnplanned,
    RecurUpdate,
    Unplanned,
)
from holdfast.commands.views import Cursor, ListSet
from holdfast.errors import Refused, UsageError
from holdfast.models import text
from holdfast.settings import MAX_BATCH, check_each, check_name, check_text
from holdfast.text import one_line
from holdfast.wire.plans import Plan, Planner

T = TypeVar("T")


def _settable(
    name: str, read: Callable[["RecurringVerbs"], T], doc: str
) -> tuple[SettableFact[T], CommandMethod[[T], bool]]:
    """Return an attribute of a template whose assignment changes the store, and its method `set_…`."""

    def get(job: "RecurringVerbs") -> T:
        return read(job)

    def change(job: Any, value: T) -> Command[bool]:
        return job._changed({name: value})  # type: ignore[no-any-return]

    get.__doc__ = doc + " Assigning it changes the store at once. Core: verbs/recur.lua."
    change.__name__ = f"set_{name}"
    change.__doc__ = (
        f"Change `{name}` in the store and here. Raises UsageError, JobNotFound. Core: verbs/recur.lua."
    )
    return SettableFact(get, change), CommandMethod(change)


def _calendar(job: "RecurringVerbs", name: str) -> str | None:
    return None if job.facts.calendar is None else getattr(job.facts.calendar, name)


def _data(job: "RecurringVerbs") -> object:
    return text(job.facts.data)


class RecurringVerbs(JidHandle):
    """A recurring job as it was at one moment; `facts` are as the store returned them, with changes made here.

    Priority, retries, tags, throttles and data are those of the jobs that it puts, `<jid>-1`, `<jid>-2`, …; jobs that
    were put before a change stay as they are.
    """

    facts: RecurringFacts
    sandbox: str | None
    """None: only a running job has a directory."""

    def __init__(self, facts: RecurringFacts, client: AnyClient) -> None:
        self.facts = facts
        self._client = client
        self._local: dict[str, object] = {}
        self.sandbox = None

    priority, set_priority = _settable(
        "priority", lambda job: job.facts.priority, "The priority of its jobs."
    )
    retries, set_retries = _settable("retries", lambda job: job.facts.retries, "The retries of its jobs.")
    interval, set_interval = _settable(
        "interval",
        lambda job: job.facts.interval_ms / 1000,
        "Seconds between two jobs; a change moves `next` by the difference.",
    )
    backlog, set_backlog = _settable(
        "backlog", lambda job: job.facts.backlog, "How many missed occurrences are made up, 0 for all."
    )
    data, set_data = _settable("data", _data, "The data of its jobs as JSON text.")
    klass, set_klass = _settable(
        "klass",
        imported,
        "The class, function or module that performs its jobs, or a name; imported at first use. Raises what that raises.",
    )

    @Local
    def klass_name(self) -> str:
        """The name of the class, function or module that performs its jobs."""
        return self.facts.klass

    @property
    def count(self) -> int:
        """How many jobs were put so far. It cannot be assigned: that raises UsageError."""
        return self.facts.count

    @count.setter
    def count(self, count: int) -> NoReturn:
        raise UsageError("count is kept by the store and cannot be changed")

    @property
    def next(self) -> float | None:
        """When the next job is due, in epoch seconds; None if never. While it is paused: when it would have been due."""
        return self.facts.next_ms / 1000 if self.facts.next_ms else None

    cron, set_cron = _settable(
        "cron",
        lambda job: _calendar(job, "cron"),
        "The cron expression that it follows; None if it has an interval.",
    )
    zone, set_zone = _settable(
        "zone",
        lambda job: _calendar(job, "zone"),
        "The time zone of its calendar; None if it has an interval.",
    )
    missed, set_missed = _settable(
        "missed",
        lambda job: _calendar(job, "missed"),
        "Which moments of its calendar that were missed get a job; None if it has an interval.",
    )
    overlap, set_overlap = _settable(
        "overlap", lambda job: job.facts.overlap, "What happens while its last job has not ended."
    )
    jitter, set_jitter = _settable(
        "jitter",
        lambda job: job.facts.calendar.jitter_ms / 1000 if job.facts.calendar else 0.0,
        "Seconds by which a job of its calendar may be put later.",
    )

    @property
    def left_out(self) -> int:
        """How many of its occurrences got no job so far: missed ones, or because of `overlap` or a unique key."""
        return self.facts.left_out

    @property
    def paused(self) -> bool:
        """Whether it is paused: `pause` and `resume` change that."""
        return self.facts.paused

    @property
    def queue(self) -> Any:
        """The queue of its jobs."""
        return self._client.queues[self.queue_name]

    @Local
    def queue_name(self) -> str:
        """The name of the queue of its jobs."""
        return self.facts.queue

    @Local
    def tags(self) -> list[str]:
        """The tags of its jobs; `tag` and `untag` change them in the store."""
        return list(self.facts.tags)

    @Local
    def throttles(self) -> list[str]:
        """The throttles of its jobs; the queue's own comes last."""
        return list(self.facts.throttles)

    @property
    def last_spawned_jid(self) -> str | None:
        """The jid of the job that was put last; None before the first."""
        return f"{self.jid}-{self.count}" if self.count else None

    @PlanProperty
    def last_spawned_job(self, ask: Planner) -> Plan[Any]:
        """The job that was put last; None before the first, or if it is gone. Core: verbs/inspect.lua."""
        jid = self.last_spawned_jid
        if jid is None:
            return None
        found = yield from ask(JobGet((jid,)))
        return self._client.jobs._of(found[0])

    @CommandMethod
    def update(self, **changes: Unpack[Changes]) -> Command[bool]:
        """Change the template in one step, in the store and here; jobs that were put before stay as they are.

        A new `interval` counts from the last occurrence; another `queue` keeps the next one; a new calendar begins now. Raises UsageError,
        JobNotFound, and WrongState for an interval of a calendar, or `missed` of an interval. Core: verbs/recur.lua.
        """
        return self._changed(changes)

    @CommandMethod
    def move(self, queue: object) -> Command[bool]:
        """Put its next jobs into another queue, a queue or its name; the next one stays due when it was.

        Raises JobNotFound. Core: verbs/recur.lua.
        """
        return self._changed({"queue": queue})

    requeue = move

    def _changed(self, changes: Mapping[str, Any]) -> Command[bool]:
        update = make_update(self._client.settings, self.jid, changes, self.facts.calendar)
        return map_reply(update, lambda changed: self._apply(update, changed))

    def _apply(self, update: RecurUpdate, changed: bool) -> bool:
        """Change this object as the store was changed."""
        new = {name: value for name, value in msgspec.structs.asdict(update).items() if value is not None}
        missed, plan = new.pop("missed", None), new.pop("plan", None)
        if plan:
            new["overlap"], now = new["calendar"].overlap, time() * 1000
            new["next_ms"] = next((due for due, _ in plan if due >= now), plan[-1][0])
        elif missed and self.facts.calendar:
            new["calendar"] = msgspec.structs.replace(self.facts.calendar, missed=missed)
        if "interval_ms" in new and not plan:
            new["next_ms"] = self.facts.next_ms + new["interval_ms"] - self.facts.interval_ms
        old, queue = self.facts.queue, new.get("queue", self.facts.queue)
        if "queue" in new or "throttles" in new:
            named = new.get("throttles", self.facts.throttles)
            own = {f"ql:q:{old}", f"ql:q:{queue}"}
            new["throttles"] = (*(name for name in named if name not in own), f"ql:q:{queue}")
        self.facts = msgspec.structs.replace(self.facts, **new)
        for fact, local in (("klass", "klass_name"), ("queue", "queue_name"), ("throttles", "throttles")):
            if fact in new:
                self._local.pop(local, None)
        return changed

    @CommandMethod
    def pause(self, *, why: str = "", who: str = "", until: datetime | float | None = None) -> Command[bool]:
        """Put no jobs until `resume`, or `until` a moment (a datetime with a zone, or epoch seconds); return False if it was so before. Jobs
        that were put stay. At that moment it is resumed by itself; what it missed until then is left out.

        It stays paused when it is changed, moved, or put again by `recur`. `who` (default: the worker name of this client) and
        `why` are shown to people. Raises JobNotFound. Core: verbs/recur.lua.
        """
        by = check_name("who", who) if who else self._client.worker_name
        until_ms = 0 if until is None else round(moment_of("until", until) * 1000)
        return map_reply(
            RecurPause(self.jid, True, by, check_text("why", why), until_ms),
            lambda changed: self._paused(changed, until_ms),
        )

    def _paused(self, changed: bool, until_ms: int) -> bool:
        self.facts = msgspec.structs.replace(self.facts, paused=True, paused_until_ms=until_ms)
        return changed

    @PlanMethod
    def resume(self, ask: Planner) -> Plan[bool]:
        """Put jobs again, at the same times as before the pause; return False if it was not paused.

        Occurrences that were missed are left out, whatever the `backlog`. Raises JobNotFound. Core: verbs/recur.lua.
        """
        changed = yield from ask(RecurPause(self.jid, on=False))
        [found] = yield from ask(RecurGet((self.jid,)))
        now = found or self.facts
        self.facts = msgspec.structs.replace(self.facts, paused=False, paused_until_ms=0, next_ms=now.next_ms)
        return changed

    @CommandMethod
    def run_now(self) -> Command[str]:
        """Put one job now, also while it is paused, and return the jid of the job. The times of the others stay.

        Raises JobNotFound. Core: verbs/recur.lua.
        """
        return map_reply(RecurRun(self.jid), self._put_now)

    def _put_now(self, jid: str) -> str:
        self.facts = msgspec.structs.replace(self.facts, count=int(jid.rpartition("-")[2]))
        return jid

    @CommandMethod
    def tag(self, *tags: str) -> Command[list[str]]:
        """Add tags to the jobs put from now on; return all tags. Core: verbs/recur.lua."""
        return map_reply(RecurTag("add", self.jid, check_each("tag", tags, MAX_BATCH)), self._tagged)

    @CommandMethod
    def untag(self, *tags: str) -> Command[list[str]]:
        """Remove tags; return those left. Core: verbs/recur.lua."""
        return map_reply(RecurTag("remove", self.jid, check_each("tag", tags, MAX_BATCH)), self._tagged)

    def _tagged(self, tags: list[str]) -> list[str]:
        self.tags = list(tags)
        return tags

    @CommandMethod
    def cancel(self) -> Command[list[str]]:
        """Delete the template; jobs that were put stay. Returns its jid in a list. Core: verbs/recur.lua."""
        return map_reply(RecurCancel((self.jid,)), lambda _: [self.jid])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.klass_name} {self.jid}>"


class RecurringJob(RecurringVerbs, SyncMethods):
    """A recurring job of a sync client."""


class AsyncRecurringJob(RecurringVerbs, AsyncMethods):
    """A recurring job of an async client."""


log = logging.getLogger("holdfast")
_AHEAD_MS: Final = round(LEAST_SECONDS * 1000)
_PIECES: Final = 10
_COUNTS: Final = (100, 1000)
_PAGE: Final = 500
_MOST_PLANS: Final = 100_000
_ALL: Final = 2**53 - 2
_SECONDS: Final = 3.0
"""Planning stops after this time until it is called again: the heartbeats of a worker wait meanwhile."""


def extend_plans(ask: Planner, now: float, failed: dict[str, str] | None = None) -> Plan[int]:
    """Plan recurring jobs on that follow a calendar and have few moments left; return how many were looked at.

    Every worker does it once a minute, in an order of its own. Of two that do it at the same time, one does it. Why some cannot be planned is put into
    `failed` by jid; without that, it is logged. Core: verbs/recur.lua.
    """
    problems = dict[str, str]() if failed is None else failed
    end, tried = monotonic() + _SECONDS, set[str]()
    for count in _COUNTS:
        short = yield from ask(RecurUnplanned(round(now * 1000) + _AHEAD_MS, count))
        for one in sample(short, len(short)):  # so that none stands before the others again and again
            if monotonic() > end:
                return len(tried)
            if one.jid not in tried:
                tried.add(one.jid)
                yield from _extend(ask, one, now, problems)
        if len(short) < count:
            break
    if failed is None:
        log_unplanned(problems)
    return len(tried)


def log_unplanned(problems: Mapping[str, str]) -> None:
    """Log why recurring jobs cannot be planned, by jid."""
    for jid, why in problems.items():
        log.error("recurring job %s is not planned on: %s", one_line(jid), one_line(why))


def replan(ask: Planner, now: float) -> Plan[int]:
    """Plan recurring jobs once more whose plans were made with older data about time zones than this process has; return how many.

    Worker processes do it when they have started, and once an hour. Core: verbs/recur.lua.
    """
    version, end, done = tz_version(), monotonic() + _SECONDS, 0
    for skip in range(0, _MOST_PLANS, _PAGE):
        found = yield from ask(RecurUnplanned(_ALL, _PAGE, skip))
        for one in found:
            if "" < one.calendar.tz < version and monotonic() < end:
                done += yield from _replan(ask, one, now, version)
        if len(found) < _PAGE or monotonic() > end:
            break
    return done


def _replan(ask: Planner, one: Unplanned, now: float, version: str) -> Plan[bool]:
    try:
        plan = _calendar_of(one.calendar).plan(one.jid, now)
        return (yield from ask(RecurExtend(one.jid, one.last_ms, version, plan, True)))
    except (UsageError, Refused):  # `extend_plans` finds it too
        return False


def _calendar_of(own: CalendarFacts) -> Calendar:
    times = (own.jitter_ms / 1000, own.start_ms / 1000, own.end_ms / 1000)
    return Calendar(check_cron(own.cron), own.zone, *times)


def _extend(ask: Planner, one: Unplanned, now: float, problems: dict[str, str]) -> Plan[None]:
    """Plan one on until it has enough, also if nobody did for a long time."""
    last_ms = one.last_ms
    try:
        calendar = _calendar_of(one.calendar)
        for _ in range(_PIECES):
            plan = calendar.plan(one.jid, last_ms / 1000)
            if not (yield from ask(RecurExtend(one.jid, last_ms, tz_version(), plan))) or not plan:
                return
            last_ms = plan[-1].nominal_ms
            if last_ms > now * 1000 + _AHEAD_MS:
                return
    except (UsageError, Refused) as error:  # another client wrote it, or its zone is unknown to this machine
        problems[one.jid] = str(error)


MOST_DECLARED: Final = 10_000
"""Declared recurring jobs that are looked at."""


def declared_templates(ask: Planner, but: Container[str] = ()) -> Plan[list[RecurringFacts]]:
    """Return the recurring jobs that code declares, but not those named, by when a worker put them last."""
    found: list[RecurringFacts] = []
    after: Cursor | None = None
    for _ in range(MOST_DECLARED // MAX_BATCH):
        page = yield from ask(ListSet("declared", "", after, MAX_BATCH))
        jids = [jid for jid in page.names if jid not in but]
        found += [row for row in ((yield from ask(RecurGet(jids))) if jids else []) if row is not None]
        after = page.next
        if after is None:
            break
    return found


J = TypeVar("J", bound=RecurringVerbs)
"""The class of recurring jobs of a client."""


class RecurringsVerbs(Named, Generic[J]):
    """The methods of the recurring jobs of a namespace, by jid."""

    _job_class: type[J]

    @StepMethod
    def get(self, *jids: str) -> Steps[list[J]]:
        """The templates that exist, in the order of `jids`. Core: verbs/recur.lua."""
        found = yield self._client.run(RecurGet(check_each("jid", jids, MAX_BATCH)))
        return [self._job_class(facts, self._client) for facts in found if facts is not None]

    def _of(self, facts: RecurringFacts | None) -> J | None:
        return None if facts is None else self._job_class(facts, self._client)

    @CommandMethod
    def cancel(self, *jids: str) -> Command[list[bool]]:
        """Delete up to 512 templates in one step; True for each there was. Core: verbs/recur.lua."""
        return RecurCancel(check_each("jid", jids, MAX_BATCH))


class Recurring(RecurringsVerbs[RecurringJob], SyncMethods):
    """The recurring jobs of a sync client: `recurring[jid]`."""

    _job_class = RecurringJob

    def __getitem__(self, jid: str) -> RecurringJob | None:
        found = self.get(jid)
        return found[0] if found else None


class AsyncRecurring(RecurringsVerbs[AsyncRecurringJob], AsyncMethods):
    """The recurring jobs of an async client: `await recurring[jid]`."""

    _job_class = AsyncRecurringJob

    async def __getitem__(self, jid: str) -> AsyncRecurringJob | None:
        found = await self.get(jid)
        return found[0] if found else None
