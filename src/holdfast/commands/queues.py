"""Commands about queues: counts, peeks, statistics, pausing."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from holdfast.commands.base import Reply, Spoken, Word
from holdfast.models import Counts, JobFacts, Stats, text

MOST_COUNTED = 256
"""Queues that one count takes in when it names none."""


class CountQueues(Spoken, frozen=True, gc=False):
    """Count the jobs of `queues` by state, of the first 256 known ones when empty. Core: verbs/counts.lua."""

    verb: ClassVar[str] = "counts"
    reads: ClassVar[bool] = True

    queues: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        return tuple(self.queues)

    def read(self, reply: Reply) -> list[Counts]:
        return [Counts.from_row(row) for row in reply]


class Peek(Spoken, frozen=True, gc=False):
    """Look at the jobs that would be popped next, without taking them. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "peek"
    reads: ClassVar[bool] = True

    queue: str
    offset: int = 0
    count: int = 1

    def words(self) -> Sequence[Word]:
        return (self.queue, self.offset, self.count)

    def read(self, reply: Reply) -> list[JobFacts]:
        return [JobFacts.from_job_row(row) for row in reply]


class QueueNames(Spoken, frozen=True, gc=False):
    """The names of all known queues, in order of first use. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "queues"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> list[str]:
        return [text(name) for name in reply]


class GetStats(Spoken, frozen=True, gc=False):
    """The statistics of one queue on the UTC day that holds `day_ms`, 0 for today. Core: verbs/stats.lua."""

    verb: ClassVar[str] = "stats"
    reads: ClassVar[bool] = True

    queue: str
    day_ms: int = 0

    def words(self) -> Sequence[Word]:
        return (self.queue, self.day_ms)

    def read(self, reply: Reply) -> Stats:
        return Stats.from_row(reply)


class Pause(Spoken, frozen=True, gc=False):
    """Stop (`on`) or start handing out the jobs of `queues`; who and why are kept.

    `length_ms`: the pause ends by itself after so long, 0 for never. Core: verbs/pause.lua.
    """

    verb: ClassVar[str] = "pause"
    line_at: ClassVar[int] = 0

    queues: Sequence[str]
    on: bool = True
    who: str = ""
    why: str = ""
    length_ms: int = 0

    def words(self) -> Sequence[Word]:
        return (1 if self.on else 0, self.who, self.why, self.length_ms, *self.queues)

    def read(self, reply: Reply) -> int:
        return int(reply)


class QueueForget(Spoken, frozen=True, gc=False):
    """Take up to 4 empty queues off the list of known ones, with all that is left of them.

    Answers how many were known. Raises QueueNotEmpty, and then forgets none; a job that failed counts too.
    Core: verbs/forget.lua.
    """

    verb: ClassVar[str] = "queue_forget"
    line_at: ClassVar[int] = 0

    queues: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.queues)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[Spoken]] = {
    kind.verb: kind for kind in (CountQueues, Peek, QueueNames, GetStats, Pause, QueueForget)
}
