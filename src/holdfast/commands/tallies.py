"""Commands about what happened in a queue: exact tallies, and their lines minute by minute."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from holdfast.commands.base import Reply, Spoken, Word


class Tallies(msgspec.Struct, frozen=True, gc=False):
    """What happened in a queue since it was first used, exactly; `when_ms` is the moment of the count.

    `put` counts jobs that came in, by a put, a move, an unfail or from another queue; `completed` attempts that ended
    well, also into a next queue; `lost` leases whose holder fell silent; `timed_out` those that people ended.
    """

    when_ms: int
    put: int = 0
    popped: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    lost: int = 0
    timed_out: int = 0
    cancelled: int = 0

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Tallies":
        """Read a row of `minutes`."""
        return cls(*[int(value) for value in row[:9]])

    def since(self, earlier: "Tallies") -> "Tallies":
        """What happened between an earlier count and this one."""
        counts = zip(msgspec.structs.astuple(self)[1:], msgspec.structs.astuple(earlier)[1:], strict=True)
        return Tallies(self.when_ms, *[now - before for now, before in counts])

    def as_dict(self) -> dict[str, int]:
        """The counts by name, without the moment."""
        counts = msgspec.structs.asdict(self)
        del counts["when_ms"]
        return counts


class Minutes(Spoken, frozen=True, gc=False):
    """The tallies of a queue at the beginnings of minutes from `since_ms` on, and the last of them now.

    Up to 180 lines are a minute apart, up to 1,008 before those ten minutes; a minute in which nobody looked at the
    queue has none. Core: verbs/minutes.lua.
    """

    verb: ClassVar[str] = "minutes"
    reads: ClassVar[bool] = True

    queue: str
    since_ms: int = 0

    def words(self) -> Sequence[Word]:
        return (self.queue, self.since_ms)

    def read(self, reply: Reply) -> list[Tallies]:
        return [Tallies.from_row(row) for row in reply]


class Tick(Spoken, frozen=True, gc=False):
    """Note the minute of up to 128 queues, in case nobody pops from them. Answers how many.

    Core: verbs/minutes.lua.
    """

    verb: ClassVar[str] = "tick"

    queues: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.queues)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[Spoken]] = {kind.verb: kind for kind in (Minutes, Tick)}
