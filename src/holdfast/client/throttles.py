"""The verb tables of throttles, said once for both colours."""

from typing import Any, Final

from holdfast.client.colours import AsyncHandle, SyncHandle, Verb
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.listing import ListSet
from holdfast.commands.throttles import (
    UNDEFINED,
    ThrottleDelete,
    ThrottleFacts,
    ThrottleGet,
    ThrottleNames,
    ThrottleRelease,
    ThrottleSet,
)
from holdfast.errors import UsageError
from holdfast.settings import MAX_BATCH, check_milliseconds, check_name, check_throttle, check_whole

HIGHEST: Final = 1_000_000
SHORTEST: Final = 0.001


class ThrottleVerbs:
    """A named limit on how many of its jobs run at once; `ql:q:<queue>` is a queue's own."""

    _client: Any

    def __init__(self, name: str, client: Any) -> None:
        self.name = check_throttle(name)
        self._client = client

    @Verb
    def maximum(self) -> Command[int]:
        """How many may run at once; 0 for any number. Core: verbs/throttling.lua."""
        return then(ThrottleGet(self.name), lambda facts: facts.maximum)

    @Verb
    def set_maximum(self, maximum: int | None = None, expiration: float | None = None) -> Command[int]:
        """Let at most `maximum` run at once, 0 for any number, None for as many as before; more lets waiting jobs go.

        The limit ends after `expiration` seconds; None and 0 leave its end as it is, which is never for a new one.
        Raises UsageError. Core: verbs/throttling.lua.
        """
        most = None if maximum is None else check_whole("maximum", maximum, 0, HIGHEST)
        ends = check_milliseconds("expiration", expiration, SHORTEST) if expiration else 0
        return ThrottleSet(self.name, most, ends)

    @Verb
    def ttl(self) -> Command[int]:
        """Seconds until the limit ends: -1 if it has no end, -2 if there is no limit. Core: verbs/throttling.lua."""
        return then(ThrottleGet(self.name), _seconds_left)

    @Verb
    def facts(self) -> Command[ThrottleFacts]:
        """Maximum, slots in use, jobs waiting for one, and the time left, in one look. Core: verbs/throttling.lua."""
        return ThrottleGet(self.name)

    @Verb
    def delete(self) -> Command[bool]:
        """Take the limit away, which lets waiting jobs go; False if there was none. Core: verbs/throttling.lua."""
        return ThrottleDelete(self.name)

    @Verb
    def release(self, *jids: str) -> Command[int]:
        """Take the slots of up to 512 jobs, which run on; answers how many held one.

        A job that waits for a slot waits no more, and stays set aside until it is put again or cancelled.
        Core: verbs/throttling.lua.
        """
        if len(jids) > MAX_BATCH:
            raise UsageError(f"release takes at most {MAX_BATCH} jids in one call, not {len(jids)}")
        return ThrottleRelease(self.name, [check_name("jid", jid) for jid in jids])

    @Verb
    def locks(self, count: int = MAX_BATCH) -> Command[list[str]]:
        """The jids that hold a slot, the first `count` of them (512 at most). Core: verbs/listing.lua."""
        return _members("holders", self.name, count)

    @Verb
    def pending(self, count: int = MAX_BATCH) -> Command[list[str]]:
        """The jids that wait for a slot, in the order they came, the first `count` (512 at most).

        Core: verbs/listing.lua.
        """
        return _members("pending", self.name, count)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class ThrottlesVerbs:
    """What can be asked of all throttles."""

    _client: Any

    def __init__(self, client: Any) -> None:
        self._client = client

    @Verb
    def names(self, cursor: str = "0", count: int = 100) -> Command[tuple[str, list[str]]]:
        """One page of the throttles that have a limit, in no order, after the cursor of the next ("0": no more).

        Core: verbs/throttling.lua.
        """
        return ThrottleNames(check_name("cursor", cursor), check_whole("count", count, 1, MAX_BATCH))


class Throttle(ThrottleVerbs, SyncHandle):
    """A throttle of a blocking client."""


class Throttles(ThrottlesVerbs, SyncHandle):
    """The throttles of a blocking client: `throttles["name"]`."""

    def __getitem__(self, name: str) -> Throttle:
        return Throttle(name, self._client)


class AsyncThrottle(ThrottleVerbs, AsyncHandle):
    """A throttle of an async client."""


class AsyncThrottles(ThrottlesVerbs, AsyncHandle):
    """The throttles of an async client: `throttles["name"]`."""

    def __getitem__(self, name: str) -> AsyncThrottle:
        return AsyncThrottle(name, self._client)


def _members(kind: str, name: str, count: int) -> Command[list[str]]:
    page = ListSet(kind, name, None, check_whole("count", count, 1, MAX_BATCH))
    return then(page, lambda found: found.names)


def _seconds_left(facts: ThrottleFacts) -> int:
    if facts.ttl_ms == UNDEFINED or facts.ttl is None:
        return facts.ttl_ms
    return -(-facts.ttl_ms // 1000)
