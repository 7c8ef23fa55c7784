"""Commands about jobs that wait for others."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from holdfast.commands.base import Reply, Spoken, Word
from holdfast.models import text


class Depend(Spoken, frozen=True, gc=False):
    """Change what a job in state `depends` waits for: `add` or `remove` up to 512 `parents`, or let go of `all`.

    Parents that are unknown or complete count as done. When the last one is let go, the job is ready at once, whatever
    delay it was put with. Answers 1. Raises JobNotFound, WrongState, DependencyRefused (itself, or a circle), Refused
    beyond 1,000 parents. Core: verbs/depend.lua.
    """

    verb: ClassVar[str] = "depend"
    line_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    jid: str
    parents: Sequence[str] = ()
    mode: Literal["add", "remove", "all"] = "add"

    def words(self) -> Sequence[Word]:
        return (self.mode, self.jid, *self.parents)

    def read(self, reply: Reply) -> int:
        return int(reply)


class Dependents(Spoken, frozen=True, gc=False):
    """One page of the jobs that wait for `jid`, the first to come first: up to 512.

    Answers the cursor of the next page ("" when this is the last) and the jids. An unknown job has none. Core:
    verbs/depend.lua.
    """

    verb: ClassVar[str] = "dependents"
    reads: ClassVar[bool] = True

    jid: str
    cursor: str = ""
    count: int = 512

    def words(self) -> Sequence[Word]:
        return (self.jid, self.cursor, self.count)

    def read(self, reply: Reply) -> tuple[str, list[str]]:
        return text(reply[0]), [text(jid) for jid in reply[1:]]


VERBS: Mapping[str, type[Spoken]] = {kind.verb: kind for kind in (Depend, Dependents)}
