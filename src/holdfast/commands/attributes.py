"""Commands about what people attach to jobs: tags, marks, lines of history, reports of progress."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from holdfast.commands.base import Reply, Spoken, Word
from holdfast.commands.leases import Lease
from holdfast.models import JobFacts, text


class Tag(Spoken, frozen=True, gc=False):
    """Add tags to a job, or remove some; answers all it has then, in the order they came.

    A job has at most 64. Adding one again renews the time it was attached. Raises JobNotFound. Core: verbs/tag.lua.
    """

    verb: ClassVar[str] = "tag"
    adds: ClassVar[bool] = True

    mode: Literal["add", "remove"]
    jid: str
    tags: Sequence[str]

    def words(self) -> Sequence[Word]:
        return (self.mode, self.jid, *self.tags)

    def read(self, reply: Reply) -> list[str]:
        return [text(tag) for tag in reply]


class Tags(Spoken, frozen=True, gc=False):
    """Tags and how many jobs have them, for those that at least `least` have; most used first. Core: verbs/tag.lua."""

    verb: ClassVar[str] = "tags"
    reads: ClassVar[bool] = True

    least: int = 2
    offset: int = 0
    count: int = 25

    def words(self) -> Sequence[Word]:
        return (self.least, self.offset, self.count)

    def read(self, reply: Reply) -> dict[str, int]:
        return {text(reply[at]): int(reply[at + 1]) for at in range(0, len(reply), 2)}


class Tagged(Spoken, frozen=True, gc=False):
    """How many jobs have a tag, and a page of their jids by the time it was attached. Core: verbs/tag.lua."""

    verb: ClassVar[str] = "tagged"
    reads: ClassVar[bool] = True

    tag: str
    offset: int = 0
    count: int = 25

    def words(self) -> Sequence[Word]:
        return (self.tag, self.offset, self.count)

    def read(self, reply: Reply) -> tuple[int, list[str]]:
        return int(reply[0]), [text(jid) for jid in reply[1:]]


class Track(Spoken, frozen=True, gc=False):
    """Watch a job, or stop watching it; answers whether that changed anything.

    What happens to a watched job is published on `<root>e:<event>`. The mark of a job that is gone can be taken away.
    Raises JobNotFound. Core: verbs/track.lua.
    """

    verb: ClassVar[str] = "track"
    line_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    on: bool
    jid: str

    def words(self) -> Sequence[Word]:
        return (int(self.on), self.jid)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A jid that is watched, since when in milliseconds, and whether there is such a job still."""

    jid: str
    since_ms: int
    exists: bool


class Tracked(Spoken, frozen=True, gc=False):
    """The jids that are watched, at most 1,000, those watched longest first. Core: verbs/track.lua."""

    verb: ClassVar[str] = "tracked"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> list[Mark]:
        return [
            Mark(text(reply[at]), int(reply[at + 1]), bool(reply[at + 2])) for at in range(0, len(reply), 3)
        ]


class Log(Spoken, frozen=True, gc=False):
    """Add a line to a job's history: any name, and a JSON object (up to 16 kB of bytes) or nothing.

    Raises JobNotFound, and WrongState for a job completed more than 100,000 completions ago. Core: verbs/log.lua.
    """

    verb: ClassVar[str] = "log"
    line_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    jid: str
    message: str
    data: bytes = b""

    def words(self) -> Sequence[Word]:
        return (self.jid, self.message, self.data)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class Report(Spoken, frozen=True, gc=False):
    """Say how far a job is that one holds: `progress` from 0 to 1 with a note (up to 1,000 bytes), and lines it logged.

    None leaves progress and note as they were. Of the lines the newest are kept, 100 and 8 kB of them. They stay over
    retries, and go when the job is put anew. Raises LeaseLost. Core: verbs/report.lua.
    """

    verb: ClassVar[str] = "report"
    line_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    worker: str
    lease: Lease | JobFacts
    progress: float | None = None
    note: str = ""
    lines: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        fraction = "" if self.progress is None else f"{self.progress:.6g}"
        return (self.worker, self.lease.jid, self.lease.token, fraction, self.note, *self.lines)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


VERBS: Mapping[str, type[Spoken]] = {
    kind.verb: kind for kind in (Tag, Tags, Tagged, Track, Tracked, Log, Report)
}
