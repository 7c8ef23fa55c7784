"""Recurring jobs as both clients show them: `client.jobs[jid]`, `client.recurring[jid]`, and what a template can be told."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, Unpack

import msgspec

from holdfast.client.descriptors import (
    AsyncHandle,
    CommandMethod,
    Named,
    PlanProperty,
    SettableFact,
    SyncHandle,
)
from holdfast.client.jobs.facts import Local, imported
from holdfast.client.recur_options import Changes, make_update
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.jobs import JobGet
from holdfast.commands.recurring import RecurCancel, RecurGet, RecurringFacts, RecurTag, RecurUpdate
from holdfast.errors import UsageError
from holdfast.models import text
from holdfast.settings import MAX_BATCH, check_each, check_name
from holdfast.wire.plans import Plan, Planner

T = TypeVar("T")


def _twins(
    name: str, read: Callable[[RecurringFacts], T], doc: str
) -> tuple[SettableFact[T], CommandMethod[[T], bool]]:
    """An attribute of a template that is assigned in the store, and its `set_…` twin."""

    def said(job: Any) -> T:
        return read(job.facts)

    def tell(job: Any, value: T) -> Command[bool]:
        return job._changed({name: value})  # type: ignore[no-any-return]

    said.__doc__ = doc + " Assigning it tells the store at once. Core: verbs/recur.lua."
    tell.__doc__ = (
        f"Change `{name}` in the store and here. Raises UsageError, JobNotFound. Core: verbs/recur.lua."
    )
    return SettableFact(said, tell), CommandMethod(tell)


class RecurringVerbs:
    """A recurring job as it was at one moment; `facts` are what the store said, and what was changed here since.

    Priority, retries, tags, throttles and data are those of the jobs it puts, `<jid>-1`, `<jid>-2`, …; jobs that
    were put stay as they are.
    """

    _client: Any
    sandbox: str | None
    """None: only a job that runs has a directory."""

    def __init__(self, facts: RecurringFacts, client: Any) -> None:
        self.facts = facts
        self._client = client
        self._local: dict[str, Any] = {}
        self.sandbox = None

    priority, set_priority = _twins("priority", lambda facts: facts.priority, "The priority of its jobs.")
    retries, set_retries = _twins("retries", lambda facts: facts.retries, "The retries of its jobs.")
    interval, set_interval = _twins(
        "interval",
        lambda facts: facts.interval_ms / 1000,
        "Seconds between two jobs; another interval moves `next` by the difference.",
    )
    backlog, set_backlog = _twins(
        "backlog", lambda facts: facts.backlog, "How many missed occurrences are made up, 0 for all."
    )

    @property
    def jid(self) -> str:
        """The template's name. Assigning it makes this object stand for another one."""
        return self.facts.jid

    @jid.setter
    def jid(self, jid: str) -> None:
        self.facts = msgspec.structs.replace(self.facts, jid=check_name("jid", jid))

    @Local
    def klass_name(self) -> str:
        """The name of what performs its jobs."""
        return self.facts.klass

    def _read_data(self) -> str:
        """The data of its jobs, as JSON text. Assigning it tells the store at once. Core: verbs/recur.lua."""
        return text(self.facts.data)

    def _tell_data(self, data: object) -> Command[bool]:
        """Change `data` in the store and here: JSON text or any JSON value. Core: verbs/recur.lua."""
        return self._changed({"data": data})

    data: SettableFact[Any] = SettableFact(_read_data, _tell_data)
    set_data = CommandMethod(_tell_data)

    def _read_klass(self) -> Any:
        """The class, function or module that performs its jobs, imported at the first look. Assigning one, or a name,
        tells the store at once. Raises what importing it raises. Core: verbs/recur.lua."""
        return imported(self)

    def _tell_klass(self, klass: object) -> Command[bool]:
        """Change `klass` in the store and here: a class, function, module or name. Core: verbs/recur.lua."""
        return self._changed({"klass": klass})

    klass: SettableFact[Any] = SettableFact(_read_klass, _tell_klass)
    set_klass = CommandMethod(_tell_klass)

    @property
    def count(self) -> int:
        """How many jobs were put so far. Only the store counts: assigning it raises UsageError."""
        return self.facts.count

    @count.setter
    def count(self, count: int) -> NoReturn:
        raise UsageError("count is kept by the store and cannot be changed")

    @property
    def next(self) -> float | None:
        """When the next job is due, in epoch seconds; None if never."""
        return self.facts.next_ms / 1000 if self.facts.next_ms else None

    @property
    def queue(self) -> Any:
        """The queue its jobs go to, of this client."""
        return self._client.queues[self.queue_name]

    @Local
    def queue_name(self) -> str:
        """The name of the queue its jobs go to."""
        return self.facts.queue

    @Local
    def tags(self) -> list[str]:
        """The tags of its jobs; `tag` and `untag` tell the store of changes."""
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
        """The job that was put last; None before the first, and when it is gone. Core: verbs/inspect.lua."""
        jid = self.last_spawned_jid
        if jid is None:
            return None
        found = yield from ask(JobGet((jid,)))
        return self._client.jobs._of(found[0])

    @CommandMethod
    def update(self, **changes: Unpack[Changes]) -> Command[bool]:
        """Change the template in one step, in the store and here; jobs that were put stay as they are.

        A new `interval` counts from the last occurrence; another `queue` keeps the next one. Raises UsageError,
        JobNotFound. Core: verbs/recur.lua.
        """
        return self._changed(changes)

    @CommandMethod
    def move(self, queue: object) -> Command[bool]:
        """Have its jobs go to another queue, a queue or its name, from the next one on, which stays due when it was.

        Raises JobNotFound. Core: verbs/recur.lua.
        """
        return self._changed({"queue": queue})

    requeue = move

    def _changed(self, changes: Any) -> Command[bool]:
        update = make_update(self._client.settings, self.jid, changes)
        return then(update, lambda answer: self._learn(update, answer))

    def _learn(self, update: RecurUpdate, answer: bool) -> bool:
        """What was changed in the store is changed here."""
        new = {name: value for name, value in msgspec.structs.asdict(update).items() if value is not None}
        if "interval_ms" in new:
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
        return answer

    @CommandMethod
    def tag(self, *tags: str) -> Command[list[str]]:
        """Add tags, which jobs put from now on carry; answers all of them. Core: verbs/recur.lua."""
        return then(RecurTag("add", self.jid, check_each("tag", tags, MAX_BATCH)), self._tagged)

    @CommandMethod
    def untag(self, *tags: str) -> Command[list[str]]:
        """Remove tags; answers those left. Core: verbs/recur.lua."""
        return then(RecurTag("remove", self.jid, check_each("tag", tags, MAX_BATCH)), self._tagged)

    def _tagged(self, tags: list[str]) -> list[str]:
        self.tags = list(tags)
        return tags

    @CommandMethod
    def cancel(self) -> Command[list[str]]:
        """Put no more jobs; those that were put stay. Answers the jid asked for. Core: verbs/recur.lua."""
        return then(RecurCancel((self.jid,)), lambda _: [self.jid])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.klass_name} {self.jid}>"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return self.jid == other.jid and bool(self._client == other._client)

    def __hash__(self) -> int:
        return hash(self.jid)


class RecurringJob(RecurringVerbs, SyncHandle):
    """A recurring job of a blocking client."""


class AsyncRecurringJob(RecurringVerbs, AsyncHandle):
    """A recurring job of an async client."""


class RecurringsVerbs(Named):
    """The recurring jobs of a namespace, by jid."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @CommandMethod
    def cancel(self, *jids: str) -> Command[list[bool]]:
        """Delete up to 512 templates in one step; True for each there was. Core: verbs/recur.lua."""
        return RecurCancel(check_each("jid", jids, MAX_BATCH))


class Recurring(RecurringsVerbs, SyncHandle):
    """The recurring jobs of a blocking client: `recurring[jid]`."""

    def __getitem__(self, jid: str) -> RecurringJob | None:
        found = self.get(jid)
        return found[0] if found else None

    def get(self, *jids: str) -> list[RecurringJob]:
        """The templates that exist, in the order asked. Core: verbs/recur.lua."""
        found = self.run(RecurGet(check_each("jid", jids, MAX_BATCH)))
        return [RecurringJob(facts, self._client) for facts in found if facts is not None]

    def _of(self, facts: RecurringFacts | None) -> RecurringJob | None:
        return None if facts is None else RecurringJob(facts, self._client)


class AsyncRecurring(RecurringsVerbs, AsyncHandle):
    """The recurring jobs of an async client: `await recurring[jid]`."""

    async def __getitem__(self, jid: str) -> AsyncRecurringJob | None:
        found = await self.get(jid)
        return found[0] if found else None

    async def get(self, *jids: str) -> list[AsyncRecurringJob]:
        """The templates that exist, in the order asked. Core: verbs/recur.lua."""
        found = await self.run(RecurGet(check_each("jid", jids, MAX_BATCH)))
        return [AsyncRecurringJob(facts, self._client) for facts in found if facts is not None]

    def _of(self, facts: RecurringFacts | None) -> AsyncRecurringJob | None:
        return None if facts is None else AsyncRecurringJob(facts, self._client)
