"""Recurring jobs as both clients show them: `queue.recur(…)`, `client.recurring[jid]`, and what a template can be told."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from holdfast.client.colours import AsyncHandle, SyncHandle, Verb
from holdfast.client.options import NOTHING, check_priority
from holdfast.code.naming import klass_name
from holdfast.codecs import encode_data
from holdfast.commands import Command
from holdfast.commands.recurring import Recur, RecurCancel, RecurGet, RecurringFacts, RecurTag, RecurUpdate
from holdfast.commands.wishes import MAX_TAGS, MAX_THROTTLES, Wish
from holdfast.errors import UsageError
from holdfast.ids import mint_jid
from holdfast.settings import (
    MAX_BATCH,
    MAX_DELAY,
    MAX_RETRIES,
    check_milliseconds,
    check_name,
    check_names,
    check_whole,
    unknown_option,
)

MAX_BACKLOG: Final = 1_000_000
MAX_JID: Final = 180
SHORTEST: Final = 0.001


class RecurOptions(TypedDict, total=False):
    """How to recur: `offset` in seconds until the first job (0; negative to make up past ones), `priority` (0),
    `retries` (0), `backlog` (how many missed occurrences are made up, 0 for all), `tags`, `throttles`,
    and `jid`, the template's name."""

    offset: float
    priority: int
    retries: int
    backlog: int
    tags: Sequence[str]
    throttles: Sequence[str]
    jid: str | None


class Changes(TypedDict, total=False):
    """What `update` may change; what is left out stays. `interval` is in seconds."""

    priority: int
    retries: int
    interval: float
    data: object
    klass: object
    backlog: int
    queue: str
    throttles: Sequence[str]


_OPTIONS: Final = ("offset", "priority", "retries", "backlog", "tags", "throttles", "jid")
_CHANGES: Final = ("priority", "retries", "interval", "data", "klass", "backlog", "queue", "throttles")


class QueueRecurring:
    """What a queue can be told about recurring jobs."""

    _client: Any
    name: str

    @Verb
    def recur(
        self, klass: object, data: object = NOTHING, *, interval: float, **options: Unpack[RecurOptions]
    ) -> Command[str]:
        """Put a job into this queue every `interval` seconds; answers the jid of the template.

        Its jobs are `<jid>-1`, `<jid>-2`, …, each put at the moment it is due, however late that is noticed. A
        template of the same `jid` is replaced, its count goes on. Raises UsageError. Core: verbs/recur.lua.
        """
        return make_recur(self._client.settings.max_data, self.name, klass, data, interval, options)


class RecurringVerbs:
    """A recurring job as it was at one moment; `facts` are what the store said, never read again."""

    _client: Any

    def __init__(self, facts: RecurringFacts, client: Any) -> None:
        self.facts = facts
        self._client = client

    @property
    def jid(self) -> str:
        """The template's name."""
        return self.facts.jid

    @property
    def interval(self) -> float:
        """Seconds between two jobs."""
        return self.facts.interval_ms / 1000

    @property
    def count(self) -> int:
        """How many jobs were put so far."""
        return self.facts.count

    @property
    def next(self) -> float:
        """When the next job is due, in epoch seconds."""
        return self.facts.next_ms / 1000

    @property
    def queue(self) -> Any:
        """The queue its jobs go to, of this client."""
        return self._client.queues[self.facts.queue]

    @Verb
    def update(self, **changes: Unpack[Changes]) -> Command[bool]:
        """Change the template; jobs that were put stay as they are.

        A new `interval` counts from the last occurrence; another `queue` keeps the next one. Raises UsageError,
        JobNotFound. Core: verbs/recur.lua.
        """
        return make_update(self._client.settings.max_data, self.facts.jid, changes)

    @Verb
    def tag(self, *tags: str) -> Command[list[str]]:
        """Add tags, which jobs put from now on carry; answers all of them. Core: verbs/recur.lua."""
        return RecurTag("add", self.facts.jid, names("tag", tags))

    @Verb
    def untag(self, *tags: str) -> Command[list[str]]:
        """Remove tags; answers those left. Core: verbs/recur.lua."""
        return RecurTag("remove", self.facts.jid, names("tag", tags))

    @Verb
    def cancel(self) -> Command[list[bool]]:
        """Put no more jobs; those that were put stay. Core: verbs/recur.lua."""
        return RecurCancel((self.facts.jid,))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.facts.klass} {self.facts.jid}>"


class RecurringJob(RecurringVerbs, SyncHandle):
    """A recurring job of a blocking client."""


class AsyncRecurringJob(RecurringVerbs, AsyncHandle):
    """A recurring job of an async client."""


class RecurringsVerbs:
    """The recurring jobs of a namespace, by jid."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Verb
    def cancel(self, *jids: str) -> Command[list[bool]]:
        """Delete up to 512 templates in one step; True for each there was. Core: verbs/recur.lua."""
        return RecurCancel(names("jid", jids))


class Recurring(RecurringsVerbs, SyncHandle):
    """The recurring jobs of a blocking client: `recurring[jid]`."""

    def __getitem__(self, jid: str) -> RecurringJob | None:
        found = self.get(jid)
        return found[0] if found else None

    def get(self, *jids: str) -> list[RecurringJob]:
        """The templates that exist, in the order asked. Core: verbs/recur.lua."""
        found = self.run(RecurGet(names("jid", jids)))
        return [RecurringJob(facts, self._client) for facts in found if facts is not None]


class AsyncRecurring(RecurringsVerbs, AsyncHandle):
    """The recurring jobs of an async client: `await recurring[jid]`."""

    async def __getitem__(self, jid: str) -> AsyncRecurringJob | None:
        found = await self.get(jid)
        return found[0] if found else None

    async def get(self, *jids: str) -> list[AsyncRecurringJob]:
        """The templates that exist, in the order asked. Core: verbs/recur.lua."""
        found = await self.run(RecurGet(names("jid", jids)))
        return [AsyncRecurringJob(facts, self._client) for facts in found if facts is not None]


def names(what: str, given: Sequence[str]) -> list[str]:
    """Return up to 512 names, checked. Raises UsageError."""
    if len(given) > MAX_BATCH:
        raise UsageError(f"at most {MAX_BATCH} names in one call, not {len(given)}")
    return [check_name(what, name) for name in given]


def make_recur(
    max_data: int,
    queue: str,
    klass: object,
    data: object,
    interval: float,
    options: Mapping[str, Any],
) -> Recur:
    """The command for one template. Raises UsageError naming the argument that cannot be."""
    for option in options:
        if option not in _OPTIONS:
            raise unknown_option("recur", option, _OPTIONS)
    jid = options.get("jid")
    jid = mint_jid() if jid is None else check_name("jid", jid)
    if len(jid.encode()) > MAX_JID:
        raise UsageError(
            f"the jid of a recurring job has at most {MAX_JID} bytes, because its jobs add a number"
        )
    tags = options.get("tags")
    return Recur(
        queue,
        _klass(klass),
        check_milliseconds("interval", interval, SHORTEST),
        b"{}" if data is NOTHING else encode_data(data, max_data),
        jid,
        check_milliseconds("offset", options.get("offset") or 0, -MAX_DELAY),
        check_priority(options.get("priority") or 0),
        _retries(options.get("retries") or 0),
        _backlog(options.get("backlog") or 0),
        Wish(
            check_names("tags", tags, MAX_TAGS) if tags else None, _throttles(options.get("throttles") or ())
        ),
    )


def make_update(max_data: int, jid: str, changes: Mapping[str, Any]) -> RecurUpdate:
    """The command for changes of a template. Raises UsageError naming the one that cannot be."""
    checked: dict[str, Any] = {}
    for change, value in changes.items():
        if change not in _CHANGES:
            raise unknown_option("update", change, _CHANGES)
        if change == "interval":
            checked["interval_ms"] = check_milliseconds("interval", value, SHORTEST)
        elif change == "data":
            checked["data"] = encode_data(value, max_data)
        else:
            checked[change] = _CHECKS[change](value)
    return RecurUpdate(jid, **checked)


def _klass(klass: object) -> str:
    return check_name("klass", klass if isinstance(klass, str) else klass_name(klass))


def _retries(retries: object) -> int:
    return check_whole("retries", retries, 0, MAX_RETRIES)


def _backlog(backlog: object) -> int:
    return check_whole("backlog", backlog, 0, MAX_BACKLOG)


def _queue(queue: object) -> str:
    return check_name("queue", str(queue))


def _throttles(given: object) -> list[str]:
    return check_names("throttles", given, MAX_THROTTLES)


_CHECKS: Final[Mapping[str, Any]] = {
    "priority": check_priority,
    "retries": _retries,
    "backlog": _backlog,
    "klass": _klass,
    "queue": _queue,
    "throttles": _throttles,
}
