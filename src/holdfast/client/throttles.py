"""The methods of throttles, for both clients."""

from collections.abc import Awaitable
from typing import Final

from holdfast.client.descriptors import (
    AnyClient,
    AsyncMethods,
    CommandMethod,
    Named,
    PlanMethod,
    SettableMethod,
    SettableProperty,
    SyncMethods,
)
from holdfast.client.tables import listed
from holdfast.commands import Command
from holdfast.commands.base import map_reply
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
from holdfast.settings import (
    MAX_BATCH,
    MAX_WHOLE,
    OWN_THROTTLE,
    SHORTEST,
    check_each,
    check_milliseconds,
    check_name,
    check_throttle,
    check_whole,
)
from holdfast.wire.plans import Plan, Planner

HIGHEST: Final = 1_000_000


class ThrottleVerbs:
    """A named limit on how many of its jobs run at once; `ql:q:<queue>` is the throttle of a queue.

    Two are equal if name and client are equal.
    """

    _client: AnyClient

    def __init__(self, client: AnyClient, name: str) -> None:
        self.name = check_throttle(name)
        self._client = client

    @property
    def id(self) -> str:
        """The name, under its name in other clients."""
        return self.name

    def _maximum(self) -> Command[int]:
        """How many may run at once, 0 for no limit. `throttle.maximum = 5` is `set_maximum(5)`.

        Core: verbs/throttle.lua.
        """
        return map_reply(ThrottleGet(self.name), lambda facts: facts.maximum)

    def _set_maximum(self, maximum: int | None = None, expiration: float | None = None) -> Command[int]:
        """Set how many may run at once: 0 for no limit, None for the present limit. A higher limit releases waiting jobs.

        The limit ends after `expiration` seconds; None and 0 leave its end as it is; a new limit has no end.
        Raises UsageError. Core: verbs/throttle.lua.
        """
        most = None if maximum is None else check_whole("maximum", maximum, 0, HIGHEST)
        ends = check_milliseconds("expiration", expiration, SHORTEST) if expiration else 0
        return ThrottleSet(self.name, most, ends)

    maximum = SettableMethod(_maximum, _set_maximum)
    set_maximum = CommandMethod(_set_maximum)

    def _expiration(self) -> Command[float | None]:
        """Seconds until the limit ends, None without a limit or an end. Assigning it sets the end.

        Core: verbs/throttle.lua.
        """
        return map_reply(ThrottleGet(self.name), lambda facts: facts.ttl)

    def _set_expiration(self, seconds: float | None) -> Command[int]:
        """Set after how many `seconds` the limit ends, at least 0.001; its maximum stays.

        An end cannot be removed: delete the limit and set it again. Raises UsageError, for None too.
        Core: verbs/throttle.lua.
        """
        return ThrottleSet(self.name, None, check_milliseconds("expiration", seconds, SHORTEST))

    expiration = SettableProperty(_expiration, _set_expiration)
    set_expiration = CommandMethod(_set_expiration)

    @CommandMethod
    def ttl(self) -> Command[int]:
        """Seconds until the limit ends: -1 if it has no end, -2 if there is no limit. Core: verbs/throttle.lua."""
        return map_reply(ThrottleGet(self.name), _seconds_left)

    @CommandMethod
    def facts(self) -> Command[ThrottleFacts]:
        """Maximum, slots in use, jobs waiting for one, and the time left, in one call. Core: verbs/throttle.lua."""
        return ThrottleGet(self.name)

    @CommandMethod
    def delete(self) -> Command[bool]:
        """Delete the limit, which releases waiting jobs; False if there was none. Core: verbs/throttle.lua."""
        return ThrottleDelete(self.name)

    @CommandMethod
    def release(self, *jids: str) -> Command[int]:
        """Free the slots of up to 512 jobs, which keep running; return how many had one.

        A job that waits for a slot stops waiting, and stays throttled until it is put again or cancelled.
        Core: verbs/throttle.lua.
        """
        return ThrottleRelease(self.name, check_each("jid", jids, MAX_BATCH))

    @PlanMethod
    def locks(self, ask: Planner, count: int | None = None) -> Plan[list[str]]:
        """The jids that have a slot, the first `count`; by default all. Core: verbs/list.lua."""
        return listed(ask, "holders", self.name, count=_limit(count))

    @PlanMethod
    def pending(self, ask: Planner, count: int | None = None) -> Plan[list[str]]:
        """The jids that wait for a slot, the first `count` in order of arrival; by default all.

        Core: verbs/list.lua.
        """
        return listed(ask, "pending", self.name, count=_limit(count))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.name == other.name and self._client == other._client

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class ThrottlesVerbs(Named):
    """The methods of all throttles together."""

    @CommandMethod
    def names(self, cursor: str = "0", count: int = 100) -> Command[tuple[str, list[str]]]:
        """One page of the throttles that have a limit, in no order, and the cursor of the next page ("0" after the last).

        Core: verbs/throttle.lua.
        """
        return ThrottleNames(check_name("cursor", cursor), check_whole("count", count, 1, MAX_BATCH))


class Throttle(ThrottleVerbs, SyncMethods):
    """A throttle of a sync client."""


class Throttles(ThrottlesVerbs, SyncMethods):
    """The throttles of a sync client: `throttles["name"]`."""

    def __getitem__(self, name: str) -> Throttle:
        return Throttle(self._client, name)

    @property
    def counts(self) -> list[Throttle]:
        """The throttle of every known queue, in order of first use. Core: verbs/inspect.lua."""
        return [self[name] for name in self.run(_names_of_own())]


class AsyncThrottle(ThrottleVerbs, AsyncMethods):
    """A throttle of an async client."""


class AsyncThrottles(ThrottlesVerbs, AsyncMethods):
    """The throttles of an async client: `throttles["name"]`."""

    def __getitem__(self, name: str) -> AsyncThrottle:
        return AsyncThrottle(self._client, name)

    @property
    def counts(self) -> Awaitable[list[AsyncThrottle]]:
        """The throttle of every known queue, in order of first use. Core: verbs/inspect.lua."""
        return self.run(map_reply(_names_of_own(), lambda names: [self[name] for name in names]))


def _names_of_own() -> Command[list[str]]:
    return map_reply(QueueNames(), lambda names: [OWN_THROTTLE + name for name in names])


def _limit(count: int | None) -> int:
    return MAX_WHOLE if count is None else check_whole("count", count, 0, MAX_WHOLE)


def _seconds_left(facts: ThrottleFacts) -> int:
    if facts.ttl_ms == UNDEFINED or facts.ttl is None:
        return facts.ttl_ms
    return -(-facts.ttl_ms // 1000)
