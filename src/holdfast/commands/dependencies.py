"""Commands about dependencies between jobs, and jobs that follow the completion of another."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal

import msgspec

from holdfast.bounds import (
    Count,
    Losses,
    Milliseconds,
    Name,
    Names,
    OptionalName,
    ParentJids,
    Priority,
    Retries,
)
from holdfast.commands.base import AuditedChange, CommandBase, Reply, Word, raise_refusal
from holdfast.commands.jobs import budgets
from holdfast.commands.leases import Held
from holdfast.commands.options import JobWithOptions
from holdfast.models import text


class Depend(CommandBase, frozen=True, gc=False):
    """Change the dependencies of a job in state `depends`: `add` or `remove` up to 512 `parents`, or remove `all`.

    Parents that are unknown or complete count as done. When the last one is removed, the job is ready at once, whatever
    delay it was put with. Returns 1. Raises JobNotFound, WrongState, DependencyRefused (itself, or a cycle), Refused
    beyond 1,000 parents. Core: verbs/depend.lua.
    """

    verb: ClassVar[str] = "depend"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    jid: Name
    parents: Names = ()
    mode: Literal["add", "remove", "all"] = "add"

    @property
    def audit_line(self) -> AuditedChange:
        return AuditedChange("depend" if self.mode == "add" else "undepend", self.jid, " ".join(self.parents))

    def words(self) -> Sequence[Word]:
        return (self.mode, self.jid, *self.parents)

    def read(self, reply: Reply) -> int:
        return int(reply)


class Dependents(CommandBase, frozen=True, gc=False):
    """List a page of up to 512 jobs that wait for `jid`, oldest first.

    Returns the cursor of the next page ("" after the last one) and the jids. An unknown job has none. Core:
    verbs/depend.lua.
    """

    verb: ClassVar[str] = "dependents"
    reads: ClassVar[bool] = True

    jid: Name
    cursor: str = ""
    count: Count = 512

    def words(self) -> Sequence[Word]:
        return (self.jid, self.cursor, self.count)

    def read(self, reply: Reply) -> tuple[str, list[str]]:
        return text(reply[0]), [text(jid) for jid in reply[1:]]


class FollowUp(msgspec.Struct, frozen=True, gc=False):
    """A job that is put by the completion of another. An existing job with its jid stays unchanged."""

    queue: Name
    job: JobWithOptions
    priority: Priority = 0
    retries: Retries = 5
    delay_ms: Milliseconds = 0
    max_losses: Losses | None = None

    def words(self) -> list[Word]:
        """The words of its queue and budgets, then those of the job."""
        paid = budgets(self.retries, self.max_losses)
        return [self.queue, self.priority, paid, self.delay_ms, *self.job.words()]


class CompleteX(CommandBase, frozen=True, gc=False):
    """Complete one job and put up to 512 follow-ups in the same call; with `next_queue`, the job is then put there.

    `result` is kept for `keep_ms` if the job ends. `delay_ms` and `depends` are for the next queue: the job may wait for
    its follow-ups there, and they for it. All follow-ups together have at most 2,048 options. Returns the new state:
    complete, waiting, scheduled or depends. A refusal changes nothing. Raises LeaseLost, DependencyRefused. Core:
    verbs/complete_x.lua.
    """

    verb: ClassVar[str] = "complete_x"
    settles: ClassVar[bool] = True

    worker: Name
    job: Held
    data: bytes = b""
    keep_ms: Milliseconds = 0
    result: bytes = b""
    next_queue: OptionalName = ""
    delay_ms: Milliseconds = 0
    depends: ParentJids = ()
    follow: Sequence[FollowUp] = ()

    def words(self) -> Sequence[Word]:
        words: list[Word] = [self.worker, self.job.jid, self.job.token, self.data, self.keep_ms, self.result]
        words += (self.next_queue, self.delay_ms, len(self.depends), *self.depends)
        for one in self.follow:
            words += one.words()
        return words

    def read(self, reply: Reply) -> str:
        result = text(reply[0])
        if result in _STATES:
            return result
        raise_refusal(reply[0])
        # An earlier try completed the job: return its present state, or `complete` if it was deleted since.
        return text(reply[1]) if len(reply) > 1 else "complete"


_STATES: Final = frozenset(("complete", "waiting", "scheduled", "depends"))
VERBS: Mapping[str, type[CommandBase]] = {kind.verb: kind for kind in (Depend, Dependents, CompleteX)}
