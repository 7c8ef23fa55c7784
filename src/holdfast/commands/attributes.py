"""Commands about what is attached to jobs: tags, tracking, lines of history, progress."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from holdfast.bounds import Count, Fraction, Name, TagNames, Whole
from holdfast.commands.base import CommandBase, Reply, Word
from holdfast.commands.leases import Lease
from holdfast.models import JobFacts, text


class Tag(CommandBase, frozen=True, gc=False):
    """Add tags to a job, or remove some. Returns all its tags, in the order they were added.

    A job has at most 64. Adding one again renews its time. Raises JobNotFound. Core: verbs/tag.lua.
    """

    verb: ClassVar[str] = "tag"
    adds: ClassVar[bool] = True

    mode: Literal["add", "remove"]
    jid: Name
    tags: TagNames

    def words(self) -> Sequence[Word]:
        return (self.mode, self.jid, *self.tags)

    def read(self, reply: Reply) -> list[str]:
        return [text(tag) for tag in reply]


class Tags(CommandBase, frozen=True, gc=False):
    """Count the jobs of each tag that at least `least` jobs have; most used first. Core: verbs/tag.lua."""

    verb: ClassVar[str] = "tags"
    reads: ClassVar[bool] = True

    least: Whole = 2
    offset: Whole = 0
    count: Count = 25

    def words(self) -> Sequence[Word]:
        return (self.least, self.offset, self.count)

    def read(self, reply: Reply) -> dict[str, int]:
        return {text(reply[at]): int(reply[at + 1]) for at in range(0, len(reply), 2)}


class Tagged(CommandBase, frozen=True, gc=False):
    """Count the jobs that have a tag, and list a page of their jids, by the time it was added. Core: verbs/tag.lua."""

    verb: ClassVar[str] = "tagged"
    reads: ClassVar[bool] = True

    tag: Name
    offset: Whole = 0
    count: Count = 25

    def words(self) -> Sequence[Word]:
        return (self.tag, self.offset, self.count)

    def read(self, reply: Reply) -> tuple[int, list[str]]:
        return int(reply[0]), [text(jid) for jid in reply[1:]]


class Track(CommandBase, frozen=True, gc=False):
    """Track a job, or stop tracking it. Returns whether that changed anything.

    Events of a tracked job are published on `<root>e:<event>`. Tracking of a deleted job can be stopped too. Raises
    JobNotFound. Core: verbs/track.lua.
    """

    verb: ClassVar[str] = "track"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    on: bool
    jid: Name

    def words(self) -> Sequence[Word]:
        return (int(self.on), self.jid)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A tracked jid, since when in milliseconds, and whether the job still exists."""

    jid: str
    since_ms: int
    exists: bool


class Tracked(CommandBase, frozen=True, gc=False):
    """List the tracked jids, at most 1,000, those tracked longest first. Core: verbs/track.lua."""

    verb: ClassVar[str] = "tracked"
    reads: ClassVar[bool] = True

    def words(self) -> Sequence[Word]:
        return ()

    def read(self, reply: Reply) -> list[Mark]:
        return [
            Mark(text(reply[at]), int(reply[at + 1]), bool(reply[at + 2])) for at in range(0, len(reply), 3)
        ]


class Log(CommandBase, frozen=True, gc=False):
    """Add a line to the history of a job: any name, and optionally a JSON object of up to 16 kB.

    Raises JobNotFound, and WrongState for a job completed more than 100,000 completions ago. Core: verbs/log.lua.
    """

    verb: ClassVar[str] = "log"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    jid: Name
    message: str
    data: bytes = b""

    def words(self) -> Sequence[Word]:
        return (self.jid, self.message, self.data)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class Report(CommandBase, frozen=True, gc=False):
    """Report the progress of a leased job, from 0 to 1 with a note (up to 1,000 bytes), and lines that it logged.

    None leaves progress and note unchanged. The newest 100 lines are kept, up to 8 kB. They are kept over retries, and
    deleted when the job is put again. Raises LeaseLost. Core: verbs/report.lua.
    """

    verb: ClassVar[str] = "report"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    worker: Name
    lease: Lease | JobFacts
    progress: Fraction | None = None
    note: str = ""
    lines: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        fraction = "" if self.progress is None else f"{self.progress:.6g}"
        return (self.worker, self.lease.jid, self.lease.token, fraction, self.note, *self.lines)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (Tag, Tags, Tagged, Track, Tracked, Log, Report)
}
