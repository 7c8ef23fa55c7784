"""The verb tables of throttles, said once for both colours."""

from collections.abc import Awaitable
from typing import Any, Final

from holdfast.client.descriptors import (
    AsyncHandle,
    CommandMethod,
    Named,
    PlanMethod,
    SettableMethod,
    SettableProperty,
    SyncHandle,
)
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.queues import (
    UNDEFINED,
    QueueNames,
    ThrottleDelete,
    ThrottleFacts,
    ThrottleGet,
    ThrottleNames,
    ThrottleRelease,
    ThrottleSet,
)
from holdfast.commands.views import ListSet
from holdfast.settings import (
    MAX_BATCH,
    MAX_WHOLE,
    OWN_THROTTLE,
    check_each,
    check_milliseconds,
    check_name,
    check_throttle,
    check_whole,
)
from holdfast.wire.plans import Plan, Planner

HIGHEST: Final = 1_000_000
SHORTEST: Final = 0.001


class ThrottleVerbs:
    """A named limit on how many of its jobs run at once; `ql:q:<queue>` is a queue's own.

    Two are equal if name and client are.
    """

    _client: Any

    def __init__(self, client: Any, name: str) -> None:
        self.name = check_throttle(name)
        self._client = client

    @property
    def id(self) -> str:
        """The name, as other clients call it."""
        return self.name

    def _ask_maximum(self) -> Command[int]:
        """How many may run at once; 0 for any number. `throttle.maximum = 5` is `set_maximum(5)`.

        Core: verbs/throttle.lua.
        """
        return then(ThrottleGet(self.name), lambda facts: facts.maximum)

    def _tell_maximum(self, maximum: int | None = None, expiration: float | None = None) -> Command[int]:
        """Let at most `maximum` run at once, 0 for any number, None for as many as before; more lets waiting jobs go.

        The limit ends after `expiration` seconds; None and 0 leave its end as it is, which is never for a new one.
        Raises UsageError. Core: verbs/throttle.lua.
        """
        most = None if maximum is None else check_whole("maximum", maximum, 0, HIGHEST)
        ends = check_milliseconds("expiration", expiration, SHORTEST) if expiration else 0
        return ThrottleSet(self.name, most, ends)

    maximum = SettableMethod(_ask_maximum, _tell_maximum)
    set_maximum = CommandMethod(_tell_maximum)

    def _ask_expiration(self) -> Command[float | None]:
        """Seconds until the limit ends, None if it has no end or there is none. Assigning says when it ends.

        Core: verbs/throttle.lua.
        """
        return then(ThrottleGet(self.name), lambda facts: facts.ttl)

    def _tell_expiration(self, seconds: float | None) -> Command[int]:
        """Let the limit end after so many `seconds`, at least 0.001; its maximum stays.

        An end cannot be taken away: delete the limit and set it again. Raises UsageError, for None too.
        Core: verbs/throttle.lua.
        """
        return ThrottleSet(self.name, None, check_milliseconds("expiration", seconds, SHORTEST))

    expiration = SettableProperty(_ask_expiration, _tell_expiration)
    set_expiration = CommandMethod(_tell_expiration)

    @CommandMethod
    def ttl(self) -> Command[int]:
        """Seconds until the limit ends: -1 if it has no end, -2 if there is no limit. Core: verbs/throttle.lua."""
        return then(ThrottleGet(self.name), _seconds_left)

    @CommandMethod
    def facts(self) -> Command[ThrottleFacts]:
        """Maximum, slots in use, jobs waiting for one, and the time left, in one look. Core: verbs/throttle.lua."""
        return ThrottleGet(self.name)

    @CommandMethod
    def delete(self) -> Command[bool]:
        """Take the limit away, which lets waiting jobs go; False if there was none. Core: verbs/throttle.lua."""
        return ThrottleDelete(self.name)

    @CommandMethod
    def release(self, *jids: str) -> Command[int]:
        """Take the slots of up to 512 jobs, which run on; answers how many held one.

        A job that waits for a slot waits no more, and stays set aside until it is put again or cancelled.
        Core: verbs/throttle.lua.
        """
        return ThrottleRelease(self.name, check_each("jid", jids, MAX_BATCH))

    @PlanMethod
    def locks(self, ask: Planner, count: int | None = None) -> Plan[list[str]]:
        """The jids that hold a slot; the first `count` of them, all when left out. Core: verbs/list.lua."""
        return _members(ask, "holders", self.name, count)

    @PlanMethod
    def pending(self, ask: Planner, count: int | None = None) -> Plan[list[str]]:
        """The jids that wait for a slot, in the order they came; the first `count` of them, all when left out.

        Core: verbs/list.lua.
        """
        return _members(ask, "pending", self.name, count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.name == other.name and self._client == other._client

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class ThrottlesVerbs(Named):
    """What can be asked of all throttles."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @CommandMethod
    def names(self, cursor: str = "0", count: int = 100) -> Command[tuple[str, list[str]]]:
        """One page of the throttles that have a limit, in no order, after the cursor of the next ("0": no more).

        Core: verbs/throttle.lua.
        """
        return ThrottleNames(check_name("cursor", cursor), check_whole("count", count, 1, MAX_BATCH))


class Throttle(ThrottleVerbs, SyncHandle):
    """A throttle of a blocking client."""


class Throttles(ThrottlesVerbs, SyncHandle):
    """The throttles of a blocking client: `throttles["name"]`."""

    def __getitem__(self, name: str) -> Throttle:
        return Throttle(self._client, name)

    @property
    def counts(self) -> list[Throttle]:
        """The throttle of every known queue, in order of first use. Core: verbs/inspect.lua."""
        return [self[name] for name in self.run(_names_of_own())]


class AsyncThrottle(ThrottleVerbs, AsyncHandle):
    """A throttle of an async client."""


class AsyncThrottles(ThrottlesVerbs, AsyncHandle):
    """The throttles of an async client: `throttles["name"]`."""

    def __getitem__(self, name: str) -> AsyncThrottle:
        return AsyncThrottle(self._client, name)

    @property
    def counts(self) -> Awaitable[list[AsyncThrottle]]:
        """The throttle of every known queue, in order of first use. Core: verbs/inspect.lua."""
        return self.run(then(_names_of_own(), lambda names: [self[name] for name in names]))


def _names_of_own() -> Command[list[str]]:
    return then(QueueNames(), lambda names: [OWN_THROTTLE + name for name in names])


def _members(ask: Planner, kind: str, name: str, count: int | None) -> Plan[list[str]]:
    left = MAX_WHOLE if count is None else check_whole("count", count, 0, MAX_WHOLE)
    found: dict[str, None] = {}
    after = None
    while left > 0:
        page = yield from ask(ListSet(kind, name, after, min(left, MAX_BATCH)))
        found.update(dict.fromkeys(page.names))
        left, after = left - len(page.names), page.next
        if after is None:
            break
    return list(found)


def _seconds_left(facts: ThrottleFacts) -> int:
    if facts.ttl_ms == UNDEFINED or facts.ttl is None:
        return facts.ttl_ms
    return -(-facts.ttl_ms // 1000)
