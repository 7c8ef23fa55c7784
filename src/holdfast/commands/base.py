"""What a command is: a frozen value that turns itself into words and reads its reply.

A command has no socket, and sync and async clients share it. `words()` leaves out the request id of a numbered call:
`wire.exchange` inserts it at `request_id_at`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar, cast

import msgspec

from holdfast.bounds import Name
from holdfast.errors import Refused, UsageError, refusal
from holdfast.models import Reply as Reply

Word = str | bytes | int
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
T = TypeVar("T")


class AuditedChange(NamedTuple):
    """What was done to what, as the audit log has it."""

    what: str
    target: str
    detail: str = ""


class Command(Protocol[R_co]):
    """One call of one verb.

    `request_id_at`: the position of the request id among the words, -1 for a call without one. `adds`: the verb adds
    something, so a full store refuses it at once. `reads`: it changes nothing. `settles`: it ends leases, so a job that
    a repeat does not find was settled by the first try and deleted since.
    """

    verb: ClassVar[str]
    request_id_at: ClassVar[int]
    adds: ClassVar[bool]
    reads: ClassVar[bool]
    settles: ClassVar[bool]

    @property
    def numbered(self) -> bool:
        """Whether a request id is sent with this call."""
        ...

    @property
    def audit_line(self) -> AuditedChange | None:
        """What an operator changes by it, for the audit log; None for what is not noted there."""
        ...

    @property
    def repeat_advice(self) -> str:
        """Advice on repeating the call when it is unknown whether it happened: the end of an error message."""
        ...

    def words(self) -> Sequence[Word]:
        """The arguments after the root, in the core's order."""
        ...

    def read(self, reply: Reply) -> R_co:
        """Return the result for the core's reply. Raises Refused for a refused job."""
        ...


class CommandBase(msgspec.Struct, frozen=True, gc=False):
    """The base of all commands, with the default flags; each verb overrides what differs."""

    request_id_at: ClassVar[int] = -1
    adds: ClassVar[bool] = False
    reads: ClassVar[bool] = False
    settles: ClassVar[bool] = False

    @property
    def numbered(self) -> bool:
        """Whether a request id is sent with this call."""
        return self.request_id_at >= 0

    @property
    def audit_line(self) -> AuditedChange | None:
        """What an operator changes by it; None for what is not noted in the audit log."""
        return None

    @property
    def repeat_advice(self) -> str:
        """Advice on repeating the call: reads and calls without a request id are safe to repeat."""
        if self.reads:
            return "it only reads, so repeating it is safe"
        if self.request_id_at < 0:
            return "repeating it is safe"
        return "check before you repeat it"


def check_command(command: object) -> None:
    """Raise UsageError for an object that is not a command of `holdfast.commands`."""
    if not hasattr(command, "verb"):
        raise UsageError(f"a client runs commands of holdfast.commands, not {command!r:.80}")


def refusals_by_index(reply: Sequence[Reply], start: int = 1) -> dict[int, Refused | None]:
    """Read (index, code) pairs from `start` on. Returns the refusal by index, None for `again` (the first try succeeded)."""
    refusals: dict[int, Refused | None] = {}
    for at in range(start, len(reply), 2):
        refusals[int(reply[at])] = refusal_of(reply[at + 1])
    return refusals


def refusal_of(code: Reply) -> Refused | None:
    """Return the refusal for a code of a batch, None for `again`, and where another job stands for this one."""
    return None if code == b"again" or standing_jid(code) is not None else refusal(code)


_STANDING: Final = (b"kept ", b"replaced ")


def standing_jid(code: Reply) -> "NotedJid | None":
    """Return the jid of the job that holds the unique key of a put, which was kept or replaced; None for any other code."""
    if not isinstance(code, bytes) or not code.startswith(_STANDING):
        return None
    jid = NotedJid(code.partition(b" ")[2].decode())
    jid.is_new = False
    return jid


class NotedJid(str):
    """A jid of a put that may not make a job: the put notes here whether it did. None: not known yet.

    `standing`: the jid of the job that holds its unique key, if that is another.
    """

    is_new: bool | None = None
    standing: str = ""


def note_jids(jids: Sequence[object], reply: Sequence[Reply]) -> None:
    """Note for each NotedJid of a put that succeeded whether its job was made: the reply lists the jobs that existed already."""
    there = {int(index) for index in reply[1::2]}
    for index, jid in enumerate(jids):
        if isinstance(jid, NotedJid):
            jid.is_new = index not in there


def raise_refusal(code: Reply) -> None:
    """Raise the refusal for `code`, unless it is `again`."""
    refused = refusal_of(code)
    if refused is not None:
        raise refused


def milliseconds(seconds: float | None) -> int:
    """Return seconds as whole milliseconds; None is 0, the core's default."""
    return round(seconds * 1000) if seconds else 0


def seen_words(seen: object) -> tuple[str, ...]:
    """Return the value that something has to have, for a command that changes it, as its last word; none for None."""
    return () if seen is None else (str(seen),)


def map_reply(command: Command[T], convert: Callable[[T], R]) -> Command[R]:
    """Return a command whose result is converted by `convert`, such as facts to a handle."""
    return cast("Command[R]", _Converted(command, convert))


def hurried(command: Command[R]) -> Command[R]:
    """Return a command that is not worth waiting for: it is sent again only briefly."""
    return cast("Command[R]", _Hurried(command, lambda result: result))


class _Converted:
    """A command with a converted result. Its flags are those of one command, not of a class, so its type is not Command."""

    __slots__ = (
        "_convert",
        "_within",
        "adds",
        "numbered",
        "reads",
        "request_id_at",
        "settles",
        "verb",
        "words",
    )

    def __init__(self, within: Command[object], convert: Callable[[Any], object]) -> None:
        self._within = within
        self._convert = convert
        self.verb = within.verb
        self.request_id_at = within.request_id_at
        self.adds = within.adds
        self.reads = within.reads
        self.settles = within.settles
        self.numbered = within.numbered
        self.words = within.words

    @property
    def repeat_advice(self) -> str:
        return self._within.repeat_advice

    @property
    def audit_line(self) -> AuditedChange | None:
        return self._within.audit_line

    def read(self, reply: Reply) -> object:
        return self._convert(self._within.read(reply))


class _Hurried(_Converted):
    __slots__ = ()

    deadline = 1.0


# Commands of the reqless protocol, by their names there, on a native root.

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
                raise Refused(f"{self.command} was done before, but its reply was too long to be kept")
            return texts
        return _text(reply)


def _text(value: Reply) -> str | int | None:
    found: str | int | None = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return found


VERBS: Mapping[str, type[CommandBase]] = {kind.verb: kind for kind in (Call,)}
