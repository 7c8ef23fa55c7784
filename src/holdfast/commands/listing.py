"""Commands that read sets page by page, from a cursor that nothing moves."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal

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


VERBS: Mapping[str, type[Spoken]] = {kind.verb: kind for kind in (ListSet,)}
