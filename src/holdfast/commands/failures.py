"""Commands about failed jobs: failure groups, their jobs, and putting these into a queue again."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from holdfast.bounds import Count, Name, Whole
from holdfast.commands.base import CommandBase, Reply, Word
from holdfast.models import text

MAX_UNFAILED = 200
"""The largest number of jobs in one call of `unfail`."""

PARENT_FAILED = "-ParentFailed"
"""What the groups end with of jobs that failed because a job before them did not complete."""

START = "0"
"""The cursor of the first page; the cursor after the last page is None."""


def _following(cursor: Reply) -> str | None:
    return None if cursor == b"0" else text(cursor)


class Failures(CommandBase, frozen=True, gc=False):
    """Count the jobs of about `count` failure groups (512 at most). Returns the next cursor, and the counts by group.

    Core: verbs/inspect.lua.
    """

    verb: ClassVar[str] = "failures"
    reads: ClassVar[bool] = True

    cursor: str = START
    count: Count = 512

    def words(self) -> Sequence[Word]:
        return (self.cursor, self.count)

    def read(self, reply: Reply) -> tuple[str | None, dict[str, int]]:
        sizes = {text(reply[at]): int(reply[at + 1]) for at in range(1, len(reply), 2)}
        return _following(reply[0]), sizes


class FailureGroup(msgspec.Struct, frozen=True, gc=False):
    """A failure group: how many jobs are in it, when the first and the last of them failed, and the jid of the last.

    `trend`: the number of failures in each of the last 48 hours, the present hour last, whatever happened to the jobs
    since; `trend_from_ms`: when its first hour began.
    """

    name: str
    count: int
    first_ms: int
    last_ms: int
    newest: str
    trend_from_ms: int
    trend: tuple[int, ...]

    @classmethod
    def from_row(cls, row: Sequence[Reply]) -> "FailureGroup":
        """Read a row of `failure_groups`."""
        name, count, first, last, newest, since = row[:6]
        numbers = int(count), int(first), int(last)
        return cls(text(name), *numbers, text(newest), int(since), tuple([int(cell) for cell in row[6:54]]))


class FailureGroups(CommandBase, frozen=True, gc=False):
    """Describe about `count` failure groups (200 at most). Returns the next cursor, and the groups.

    Core: verbs/inspect.lua.
    """

    verb: ClassVar[str] = "failure_groups"
    reads: ClassVar[bool] = True

    cursor: str = START
    count: Count = 100

    def words(self) -> Sequence[Word]:
        return (self.cursor, self.count)

    def read(self, reply: Reply) -> tuple[str | None, list[FailureGroup]]:
        return _following(reply[0]), [FailureGroup.from_row(row) for row in reply[1:]]


class Failed(CommandBase, frozen=True, gc=False):
    """List a failure group. Returns its size, and a page of jids, newest failure first. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "failed"
    reads: ClassVar[bool] = True

    group: Name
    offset: Whole = 0
    count: Count = 25

    def words(self) -> Sequence[Word]:
        return (self.group, self.offset, self.count)

    def read(self, reply: Reply) -> tuple[int, list[str]]:
        return int(reply[0]), [text(jid) for jid in reply[1:]]


class Unfail(CommandBase, frozen=True, gc=False):
    """Put up to `count` failed jobs of `group` (200 at most) into `queue`, the oldest failures first.

    Their retries are restored; they keep their priority. Returns how many. Core: verbs/unfail.lua.
    """

    verb: ClassVar[str] = "unfail"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    queue: Name
    group: Name
    count: Count = 25

    def words(self) -> Sequence[Word]:
        return (self.queue, self.group, self.count)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (Failures, FailureGroups, Failed, Unfail)
}
