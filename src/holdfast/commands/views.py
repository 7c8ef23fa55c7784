"""Commands that only read: sets page by page, counts minute by minute, the reasons why a job does not run."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, cast

import msgspec

from holdfast.bounds import Count, Milliseconds, Name, Names, OptionalName
from holdfast.commands.base import CommandBase, Reply, Word
from holdfast.models import text

Cursor = tuple[str, str]
Direction = Literal["", "up", "down"]

OF_QUEUES: Final = frozenset(
    ("waiting", "running", "stalled", "scheduled", "depends", "throttled", "recurring", "failed")
)
NAMELESS: Final = frozenset(("completed", "tracked", "workers", "versions", "queues", "topics", "declared"))
OF_TOPICS: Final = frozenset(("queued", "reserved"))
SETS: Final = OF_QUEUES | OF_TOPICS | NAMELESS | {"group", "tagged", "holders", "pending"}
"""The sets that can be listed: those of a queue, of a topic, of another name, and those of the namespace."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One member of a set, and its score as the store wrote it: a position among ready jobs, or a time in ms."""

    member: str
    score: str


class Page(msgspec.Struct, frozen=True, gc=False):
    """Some entries of a set in order, and the cursor of the next page, None after the last one."""

    entries: tuple[Entry, ...]
    next: Cursor | None = None

    @property
    def names(self) -> list[str]:
        """The jids or names of the entries."""
        return [entry.member for entry in self.entries]


class ListSet(CommandBase, frozen=True, gc=False):
    """List up to `count` (512 at most) entries of a set after the cursor `after`.

    `set` is one of SETS, `name` its owner: a queue, a topic, a failure group, a tag or a throttle. A scheduled job that is
    due is listed as waiting, after those that are ready; a job whose lease has ended as stalled. Failed, tracked,
    completed, worker and version lists begin with the newest, unless `direction` is given. `versions` are those that workers have
    reported, by when the first one did; `declared` are recurring jobs that code declares, by when a worker put them last. Core: verbs/list.lua.
    """

    verb: ClassVar[str] = "list"
    reads: ClassVar[bool] = True

    set: Name
    name: OptionalName = ""
    after: Cursor | None = None
    count: Count = 100
    direction: Direction = ""

    def words(self) -> Sequence[Word]:
        return (self.set, self.name, *(self.after or ("", "")), self.count, self.direction)

    def read(self, reply: Reply) -> Page:
        entries = tuple([Entry(text(reply[at]), text(reply[at + 1])) for at in range(0, len(reply), 2)])
        if not entries or len(entries) < self.count:
            return Page(entries)
        return Page(entries, (entries[-1].score, entries[-1].member))


class Tallies(msgspec.Struct, frozen=True, gc=False):
    """Exact counts of what happened in a queue since its first use; `when_ms` is the time of the count.

    `put` counts jobs that came in, by a put, a move, an unfail or from another queue; `completed` attempts that
    succeeded, also with a next queue; `lost` leases that expired; `timed_out` leases that a user ended. `waiting` is no such
    count: how many jobs waited at that time, -1 if it is not known.
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
    waiting: int = -1

    @classmethod
    def from_row(cls, row: Sequence[Reply]) -> "Tallies":
        """Read a row of `minutes`."""
        return cls(*[int(value) for value in row[:10]])

    def since(self, earlier: "Tallies") -> "Tallies":
        """Return the difference to an earlier count, at least 0: if counts were lost in between, the difference is 0."""
        counts = zip(msgspec.structs.astuple(self)[1:9], msgspec.structs.astuple(earlier)[1:9], strict=True)
        events = Tallies(self.when_ms, *[max(now - before, 0) for now, before in counts])
        return msgspec.structs.replace(events, waiting=self.waiting)

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name, without the time."""
        counts = msgspec.structs.asdict(self)
        del counts["when_ms"], counts["waiting"]
        return counts


class Minutes(CommandBase, frozen=True, gc=False):
    """Read the tallies of a queue at the beginning of each minute from `since_ms` on; the last ones are those of now.

    Up to 180 lines are a minute apart, and up to 1,008 before them ten minutes. A minute in which nothing changed has
    none. Core: verbs/stats.lua.
    """

    verb: ClassVar[str] = "minutes"
    reads: ClassVar[bool] = True

    queue: Name
    since_ms: Milliseconds = 0

    def words(self) -> Sequence[Word]:
        return (self.queue, self.since_ms)

    def read(self, reply: Reply) -> list[Tallies]:
        return [Tallies.from_row(row) for row in reply]


class Tick(CommandBase, frozen=True, gc=False):
    """Note the tallies of this minute for up to 128 queues, for queues without pops. Returns how many.

    Core: verbs/stats.lua.
    """

    verb: ClassVar[str] = "tick"

    queues: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.queues)

    def read(self, reply: Reply) -> int:
        return int(reply)


class Explain(CommandBase, frozen=True, gc=False):
    """Read everything that decides whether a job runs, at one moment: facts by name, times in ms.

    Missing facts are left out; a job that does not exist has only `now`, `jid`, `state` (gone) and `result`.
    Core: verbs/explain.lua.
    """

    verb: ClassVar[str] = "explain"
    reads: ClassVar[bool] = True

    jid: Name

    def words(self) -> Sequence[Word]:
        return (self.jid,)

    def read(self, reply: Reply) -> dict[str, Reply]:
        return {text(reply[at]): _plain(reply[at + 1]) for at in range(0, len(reply), 2)}


def _plain(value: Reply) -> Reply:
    if isinstance(value, list):
        return [_plain(one) for one in cast("Sequence[Reply]", value)]
    return text(value) if isinstance(value, bytes) else value


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind
    for kind in (
        ListSet,
        Minutes,
        Tick,
        Explain,
    )
}
