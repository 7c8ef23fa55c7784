"""Commands about queues (counts, next jobs, statistics, pauses, limits) and about throttles."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal

import msgspec

from holdfast.bounds import Count, Losses, Maximum, Milliseconds, Name, Names, OptionalName, Whole, limits
from holdfast.commands.base import AuditedChange, CommandBase, Reply, Word, seen_words
from holdfast.models import Counts, JobFacts, Stats, text


class CountQueues(CommandBase, frozen=True, gc=False):
    """Count the jobs of `queues` by state, of the first 256 known ones if empty. Core: verbs/counts.lua."""

    verb: ClassVar[str] = "counts"
    reads: ClassVar[bool] = True

    queues: Names = ()

    def words(self) -> Sequence[Word]:
        return tuple(self.queues)

    def read(self, reply: Reply) -> list[Counts]:
        return [Counts.from_row(row) for row in reply]


class Peek(CommandBase, frozen=True, gc=False):
    """List the jobs that would be popped next. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "peek"
    reads: ClassVar[bool] = True

    queue: Name
    offset: Whole = 0
    count: Count = 1

    def words(self) -> Sequence[Word]:
        return (self.queue, self.offset, self.count)

    def read(self, reply: Reply) -> list[JobFacts]:
        return [JobFacts.from_job_row(row) for row in reply]


class QueueNames(CommandBase, frozen=True, gc=False):
    """List the names of all known queues, in order of first use. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "queues"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> list[str]:
        return [text(name) for name in reply]


class GetStats(CommandBase, frozen=True, gc=False):
    """Read the statistics of one queue for the UTC day of `day_ms`, 0 for today. Core: verbs/stats.lua."""

    verb: ClassVar[str] = "stats"
    reads: ClassVar[bool] = True

    queue: Name
    day_ms: Milliseconds = 0

    def words(self) -> Sequence[Word]:
        return (self.queue, self.day_ms)

    def read(self, reply: Reply) -> Stats:
        return Stats.from_row(reply)


class Pause(CommandBase, frozen=True, gc=False):
    """Pause (`on`) or resume `queues`: workers take no jobs of a paused queue. `who` and `why` are recorded.

    `length_ms`: after which the pause ends, 0 for never. Core: verbs/pause.lua.
    """

    verb: ClassVar[str] = "pause"
    request_id_at: ClassVar[int] = 0

    queues: Names
    on: bool = True
    who: OptionalName = ""
    why: str = ""
    length_ms: Milliseconds = 0

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("pause" if self.on else "resume", ", ".join(self.queues), self.why)

    def words(self) -> Sequence[Word]:
        return (1 if self.on else 0, self.who, self.why, self.length_ms, *self.queues)

    def read(self, reply: Reply) -> int:
        return int(reply)


class QueueForget(CommandBase, frozen=True, gc=False):
    """Delete up to 4 empty queues from the list of known ones, with their settings and statistics.

    Returns how many were known. Raises QueueNotEmpty, and then deletes none; failed jobs count too.
    Core: verbs/forget.lua.
    """

    verb: ClassVar[str] = "queue_forget"
    request_id_at: ClassVar[int] = 0

    queues: Names

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("forget queue", ", ".join(self.queues))

    def words(self) -> Sequence[Word]:
        return tuple(self.queues)

    def read(self, reply: Reply) -> int:
        return int(reply)


UNDEFINED = -2


class ThrottleFacts(msgspec.Struct, frozen=True, gc=False):
    """A throttle: how many of its jobs may run at once (0: any number), how many run now, and how many wait for that.

    `ttl_ms` is how long the limit applies: -1 without end, -2 if there is no limit.
    """

    maximum: int
    used: int
    pending: int
    ttl_ms: int = UNDEFINED

    @property
    def ttl(self) -> float | None:
        """Seconds until the limit ends, None if it does not end or there is none."""
        return self.ttl_ms / 1000 if self.ttl_ms >= 0 else None


class ThrottleGet(CommandBase, frozen=True, gc=False):
    """Look up a throttle. Core: verbs/throttle.lua."""

    verb: ClassVar[str] = "throttle_get"
    reads: ClassVar[bool] = True

    name: Name

    def words(self) -> Sequence[Word]:
        return (self.name,)

    def read(self, reply: Reply) -> ThrottleFacts:
        return ThrottleFacts(*map(int, reply[:4]))


class ThrottleSet(CommandBase, frozen=True, gc=False):
    """Set how many jobs of a throttle may run at once: 0 for no limit, None for the current maximum.

    `expires_ms` is how long the limit applies; 0 leaves its end unchanged. `seen` is the maximum that it has to have, None
    for any. Raises WrongState. Core: verbs/throttle.lua.
    """

    verb: ClassVar[str] = "throttle_set"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    name: Name
    maximum: Maximum | None
    expires_ms: Milliseconds = 0
    seen: int | None = None

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange(
            "set throttle", self.name, f"maximum={self.maximum} seconds={self.expires_ms / 1000:g}"
        )

    def words(self) -> Sequence[Word]:
        maximum = "" if self.maximum is None else self.maximum
        return (self.name, maximum, self.expires_ms, *seen_words(self.seen))

    def read(self, reply: Reply) -> int:
        return int(reply)


class ThrottleDelete(CommandBase, frozen=True, gc=False):
    """Delete the limit of a throttle. Returns False if it had none. Core: verbs/throttle.lua."""

    verb: ClassVar[str] = "throttle_delete"
    request_id_at: ClassVar[int] = 0

    name: Name

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("delete throttle", self.name)

    def words(self) -> Sequence[Word]:
        return (self.name,)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class ThrottleRelease(CommandBase, frozen=True, gc=False):
    """Release the slots of a throttle that `jids` hold; the jobs continue to run. Returns how many held one.

    A job that waits for a slot does not run until it is put again.
    Core: verbs/throttle.lua.
    """

    verb: ClassVar[str] = "throttle_release"
    request_id_at: ClassVar[int] = 0

    name: Name
    jids: Names

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("release throttle", self.name, " ".join(self.jids))

    def words(self) -> Sequence[Word]:
        return (self.name, *self.jids)

    def read(self, reply: Reply) -> int:
        return int(reply)


class ThrottleNames(CommandBase, frozen=True, gc=False):
    """List a page of about `count` throttles that have a limit, in no order.

    Returns the cursor of the next page, "0" after the last one, and the names. Core: verbs/throttle.lua.
    """

    verb: ClassVar[str] = "throttles"
    reads: ClassVar[bool] = True

    cursor: str = "0"
    count: Count = 100

    def words(self) -> Sequence[Word]:
        return (self.cursor, self.count)

    def read(self, reply: Reply) -> tuple[str, list[str]]:
        return text(reply[0]), [text(name) for name in reply[1:]]


QueueOption = Literal["max-waiting", "max-losses"]
BOUNDS: Final = {"max-waiting": (1, limits(Maximum)[1]), "max-losses": limits(Losses)}


class QueueSet(CommandBase, frozen=True, gc=False):
    """Set a limit of a queue, None to remove it. Core: verbs/allow.lua.

    `seen` is what it has to be ("" for no limit), None for anything. Raises WrongState.

    `max-waiting`: puts are refused (QueueFull) while that many jobs of the queue are not running yet. `max-losses`: how
    often a job may lose its lease; the next loss fails it, whatever its retries.
    """

    verb: ClassVar[str] = "queue_set"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    queue: Name
    option: QueueOption
    value: Whole | None
    seen: int | Literal[""] | None = None

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange(
            "set queue", self.queue, f"{self.option}={'' if self.value is None else self.value}"
        )

    def words(self) -> Sequence[Word]:
        value = "" if self.value is None else self.value
        return (self.queue, self.option, value, *seen_words(self.seen))

    def read(self, reply: Reply) -> int:
        return int(reply)


class QueueGet(CommandBase, frozen=True, gc=False):
    """Read the limits of a queue that are set, by option. Core: verbs/allow.lua."""

    verb: ClassVar[str] = "queue_get"
    reads: ClassVar[bool] = True

    queue: Name

    def words(self) -> Sequence[Word]:
        return (self.queue,)

    def read(self, reply: Reply) -> dict[str, int]:
        return {text(reply[at]): int(reply[at + 1]) for at in range(0, len(reply), 2)}


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind
    for kind in (
        CountQueues,
        Peek,
        QueueNames,
        GetStats,
        Pause,
        QueueForget,
        ThrottleGet,
        ThrottleSet,
        ThrottleDelete,
        ThrottleRelease,
        ThrottleNames,
        QueueSet,
        QueueGet,
    )
}
