"""Commands of the reqless protocol, by their names there, on a native root."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from holdfast.bounds import Name
from holdfast.commands.base import CommandBase, Reply, Word
from holdfast.errors import Refused

LOOKS = frozenset(
    [
        "config.get",
        "config.getAll",
        "failureGroups.counts",
        "job.get",
        "job.getMulti",
        "jobs.completed",
        "jobs.failedByGroup",
        "jobs.tagged",
        "jobs.tracked",
        "queue.counts",
        "queue.jobsByState",
        "queue.length",
        "queue.peek",
        "queue.stats",
        "queue.throttle.get",
        "queueIdentifierPatterns.getAll",
        "queuePriorityPatterns.getAll",
        "queues.counts",
        "queues.names",
        "recurringJob.get",
        "tags.top",
        "throttle.get",
        "throttle.locks",
        "throttle.pending",
        "worker.jobs",
        "workers.counts",
    ]
)
"""Commands that may be sent twice, so they need no request id."""


class Call(CommandBase, frozen=True, gc=False):
    """Run one command of the reqless protocol. Returns its reply: text, a whole number, a list of texts, or None.

    Core: doors/native_call.lua.
    """

    verb: ClassVar[str] = "call"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    command: Name
    args: Sequence[Word] = ()

    @property
    def numbered(self) -> bool:
        """Whether the core has to recognise a repeat."""
        return self.command not in LOOKS

    def words(self) -> Sequence[Word]:
        return (self.command, *self.args)

    def read(self, reply: Reply) -> "str | int | list[str | int | None] | None":
        if type(reply) is list:
            texts = [_text(value) for value in cast("Sequence[Reply]", reply)]
            if texts == ["again"]:
                raise Refused(f"{self.command} was done before, and its reply was too long to keep")
            return texts
        return _text(reply)


def _text(value: Reply) -> str | int | None:
    found: str | int | None = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return found


VERBS: Mapping[str, type[CommandBase]] = {kind.verb: kind for kind in (Call,)}
