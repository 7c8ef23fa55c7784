"""Commands that read without changing anything: sets page by page, counts minute by minute, why a job does not run."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, cast

import msgspec

from holdfast.commands.base import Reply, Spoken, Word
from holdfast.models import text

Cursor = tuple[str, str]
Direction = Literal["", "up", "down"]

OF_QUEUES: Final = frozenset(
    ("waiting", "running", "stalled", "scheduled", "depends", "throttled", "recurring", "failed")
)
NAMELESS: Final = frozenset(("completed", "tracked", "workers", "queues", "topics"))
OF_TOPICS: Final = frozenset(("queued", "reserved"))
SETS: Final = OF_QUEUES | OF_TOPICS | NAMELESS | {"group", "tagged", "holders", "pending"}
"""What can be listed: the sets of a queue, of a topic, of something else with a name, and those of nobody."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One member of a set, and its score as the store wrote it: a place among the ready, or a time in ms."""

    member: str
    score: str


class Page(msgspec.Struct, frozen=True, gc=False):
    """Some entries of a set in its order, and the cursor that reads on behind them; None at the end."""

    entries: tuple[Entry, ...]
    next: Cursor | None = None

    @property
    def names(self) -> list[str]:
        """The jids, or names, alone."""
        return [entry.member for entry in self.entries]


class ListSet(Spoken, frozen=True, gc=False):
    """Read up to `count` (512 at most) entries of a set behind `after`; answers a Page.

    `set` is one of SETS, `name` whose it is: a queue, a topic, a failure group, a tag or a throttle. A job whose time has come
    is listed as waiting, behind what is ready; a lease past its end as stalled. Failed, tracked, completed and worker
    lists begin with the newest, unless `direction` says otherwise. Core: verbs/listing.lua.
    """

    verb: ClassVar[str] = "list"
    reads: ClassVar[bool] = True

    set: str
    name: str = ""
    after: Cursor | None = None
    count: int = 100
    direction: Direction = ""

    def words(self) -> Sequence[Word]:
        return (self.set, self.name, *(self.after or ("", "")), self.count, self.direction)

    def read(self, reply: Reply) -> Page:
        entries = tuple([Entry(text(reply[at]), text(reply[at + 1])) for at in range(0, len(reply), 2)])
        if not entries or len(entries) < self.count:
            return Page(entries)
        return Page(entries, (entries[-1].score, entries[-1].member))


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


class Explain(Spoken, frozen=True, gc=False):
    """Everything that decides whether a job runs, of one instant: facts by name, times in ms.

    What is not there is left out; a job that is not kept has only `now`, `jid`, `state` (gone) and `result`.
    Core: verbs/explain.lua.
    """

    verb: ClassVar[str] = "explain"
    reads: ClassVar[bool] = True

    jid: str

    def words(self) -> Sequence[Word]:
        return (self.jid,)

    def read(self, reply: Reply) -> dict[str, Any]:
        return {text(reply[at]): _plain(reply[at + 1]) for at in range(0, len(reply), 2)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in cast("Sequence[Any]", value)]
    return text(value) if isinstance(value, bytes) else value


VERBS: Mapping[str, type[Spoken]] = {
    kind.verb: kind
    for kind in (
        ListSet,
        Minutes,
        Tick,
        Explain,
    )
}
