"""Commands about queues: counts, next jobs, statistics, pauses."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from holdfast.commands.base import CommandBase, Reply, Word
from holdfast.models import Counts, JobFacts, Stats, text

MAX_COUNTED = 256
"""How many queues one `counts` covers if it names none."""


class CountQueues(CommandBase, frozen=True, gc=False):
    """Count the jobs of `queues` by state, of the first 256 known ones if empty. Core: verbs/counts.lua."""

    verb: ClassVar[str] = "counts"
    reads: ClassVar[bool] = True

    queues: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        return tuple(self.queues)

    def read(self, reply: Reply) -> list[Counts]:
        return [Counts.from_row(row) for row in reply]


class Peek(CommandBase, frozen=True, gc=False):
    """List the jobs that would be popped next. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "peek"
    reads: ClassVar[bool] = True

    queue: str
    offset: int = 0
    count: int = 1

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

    queue: str
    day_ms: int = 0

    def words(self) -> Sequence[Word]:
        return (self.queue, self.day_ms)

    def read(self, reply: Reply) -> Stats:
        return Stats.from_row(reply)


class Pause(CommandBase, frozen=True, gc=False):
    """Pause (`on`) or resume `queues`: workers take no jobs of a paused queue. `who` and `why` are recorded.

    `length_ms`: after which the pause ends by itself, 0 for never. Core: verbs/pause.lua.
    """

    verb: ClassVar[str] = "pause"
    request_id_at: ClassVar[int] = 0

    queues: Sequence[str]
    on: bool = True
    who: str = ""
    why: str = ""
    length_ms: int = 0

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

    queues: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.queues)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (CountQueues, Peek, QueueNames, GetStats, Pause, QueueForget)
}
