"""Commands about jobs: putting, finding, cancelling and moving them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from holdfast.commands.base import Reply, Spoken, Word, named, refuse
from holdfast.errors import JobCancelled, JobFailed, JobNotFound, Refused
from holdfast.ids import mint_jid
from holdfast.models import JobFacts, text

Mode = Literal["new", "move", "only", "old"]


def budgets(retries: int, max_losses: int | None) -> Word:
    """The word of a put for what its jobs may cost: retries alone, which pay for losses too, or both apart."""
    return retries if max_losses is None else f"{retries}/{max_losses}"


class SpokenPut(Spoken, frozen=True, gc=False):
    """What the puts share: a minted jid, and a jid that must be new, tell a repeat by themselves."""

    line_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    @property
    def numbered(self) -> bool:
        return getattr(self, "mode", "new") in ("move", "old")

    @property
    def minted(self) -> Sequence[str]:
        """The jids, if only this call can have put jobs under them (they were generated for it); else none."""
        return []

    @property
    def again(self) -> str:
        jid = getattr(self, "jid", "")
        if jid:
            return f"putting it again with jid={jid!r} and only_new=True is safe"
        return "look before you put them again, unless each has a jid of its own and only_new=True"


class Put(SpokenPut, frozen=True, gc=False):
    """Put one job. Answers its jid; a put repeated after a lost answer is never a second one.

    `data` is JSON bytes, `delay_ms` how long it stays scheduled. `mode`: `new` for a minted jid, `move` for
    a caller's own (an existing job is moved here), `only` for a job that must not exist with other content, `old` as
    `move` for a job that must exist. With `max_losses` the job has budgets of its own: lost attempts are paid from that
    number, no longer with retries. Raises JobExists, JobNotFound, QueueFull. Core: verbs/put.lua.
    """

    verb: ClassVar[str] = "put"

    queue: str
    klass: str
    data: bytes = b"{}"
    jid: str = msgspec.field(default_factory=mint_jid)
    priority: int = 0
    retries: int = 5
    delay_ms: int = 0
    mode: Mode = "new"
    max_losses: int | None = None

    @property
    def minted(self) -> Sequence[str]:
        return [self.jid] if self.mode == "new" else []

    def words(self) -> Sequence[Word]:
        return (
            self.mode,
            self.queue,
            self.priority,
            budgets(self.retries, self.max_losses),
            self.delay_ms,
            self.jid,
            self.klass,
            self.data,
        )

    def read(self, reply: Reply) -> str:
        if len(reply) > 1:
            refuse(reply[2])
        return self.jid


class PutMany(SpokenPut, frozen=True, gc=False):
    """Put up to 512 jobs that share queue and options. Answers one jid or refusal a job, in their order.

    `jobs` is flat: jid, klass, data, jid, klass, data, … Core: verbs/put.lua.
    """

    verb: ClassVar[str] = "put"

    @property
    def minted(self) -> Sequence[str]:
        return [str(jid) for jid in self.jobs[::3]] if self.mode == "new" else []

    queue: str
    jobs: Sequence[str | bytes]
    priority: int = 0
    retries: int = 5
    delay_ms: int = 0
    mode: Mode = "new"
    max_losses: int | None = None

    def words(self) -> Sequence[Word]:
        paid = budgets(self.retries, self.max_losses)
        return (self.mode, self.queue, self.priority, paid, self.delay_ms, *self.jobs)

    def read(self, reply: Reply) -> Sequence[str | Refused]:
        jids: list[Any] = list(self.jobs[::3])
        if len(reply) > 1:
            for index, refused in named(reply).items():
                if refused is not None:
                    jids[index] = refused
        return jids


class Cancel(Spoken, frozen=True, gc=False):
    """Delete up to 512 jobs. Answers True for each that was cancelled, False for unknown or complete ones.

    A worker that holds one learns of it at its next heartbeat. Core: verbs/cancel.lua.
    """

    verb: ClassVar[str] = "cancel"
    line_at: ClassVar[int] = 0

    jids: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> list[bool]:
        return [bool(answer) for answer in reply]


class CancelBy(Cancel, frozen=True, gc=False):
    """Delete jobs as `cancel` does, and record `who`, for jobs that ran or are awaited. Core: verbs/cancel.lua."""

    verb: ClassVar[str] = "cancel_by"

    who: str = ""

    def words(self) -> Sequence[Word]:
        return (self.who, *self.jids)


def list_pairs(
    tags: Sequence[str] | None, throttles: Sequence[str] | None, depends: Sequence[str] = ()
) -> list[Word]:
    """Lists of a job as (option, value) pairs. None: not said; empty: none at all."""
    pairs: list[Word] = []
    if tags is not None and not tags:
        pairs += ("untagged", "")
    if throttles is not None and not throttles:
        pairs += ("unthrottled", "")
    for option, values in (("tag", tags or ()), ("throttle", throttles or ()), ("depends", depends)):
        for value in values:
            pairs += (option, value)
    return pairs


class Move(Spoken, frozen=True, gc=False):
    """Take a job out of whatever state it is in and put it into `queue`; its holder loses the lease.

    Empty `data`, `klass` and `depends`, and None, keep what the job has. Answers the jid. Raises JobNotFound,
    DependencyRefused. Core: verbs/move.lua.
    """

    verb: ClassVar[str] = "move"
    line_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    queue: str
    jid: str
    delay_ms: int = 0
    data: bytes = b""
    priority: int | None = None
    klass: str = ""
    retries: int | None = None
    tags: Sequence[str] | None = None
    throttles: Sequence[str] | None = None
    depends: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        priority: Word = "" if self.priority is None else self.priority
        retries: Word = "" if self.retries is None else self.retries
        pairs = list_pairs(self.tags, self.throttles, self.depends)
        head = self.queue, self.delay_ms, self.jid, self.data, priority, self.klass, retries
        return (*head, len(pairs) // 2, *pairs)

    def read(self, reply: Reply) -> str:
        return text(reply)


class SetPriority(Spoken, frozen=True, gc=False):
    """Give jobs another priority; waiting ones change places. Answers True for each known job.

    Core: verbs/reprioritise.lua.
    """

    verb: ClassVar[str] = "priority"
    adds: ClassVar[bool] = True

    priority: int
    jids: Sequence[str]

    def words(self) -> Sequence[Word]:
        return (self.priority, *self.jids)

    def read(self, reply: Reply) -> list[bool]:
        return [bool(answer) for answer in reply]


class JobGet(Spoken, frozen=True, gc=False):
    """Look up jobs. Answers facts, or None for an unknown jid, in the order asked. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "job_get"
    reads: ClassVar[bool] = True

    jids: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> list[JobFacts | None]:
        return [JobFacts.from_job_row(row) if row else None for row in reply]


class JobsComplete(Spoken, frozen=True, gc=False):
    """The jids of completed jobs, newest first. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "jobs_complete"
    reads: ClassVar[bool] = True

    offset: int = 0
    count: int = 25

    def words(self) -> Sequence[Word]:
        return (self.offset, self.count)

    def read(self, reply: Reply) -> list[str]:
        return [text(jid) for jid in reply]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How far a job has come: `open`, `done` with its result, `failed` or `cancelled` with its error, or `gone`."""

    status: str
    result: bytes | None = None
    error: JobFailed | JobCancelled | None = None

    def result_of(self, jid: str) -> bytes | None:
        """The result of a job that is done.

        Raises JobFailed, JobCancelled, JobNotFound, TimeoutError for the other ends.
        """
        if self.status == "done":
            return self.result
        # An exception of its own each time: raising one adds to it.
        if isinstance(self.error, JobFailed):
            raise JobFailed(self.error.group, self.error.message, jid)
        if self.error is not None:
            raise JobCancelled(self.error.by, self.error.at, jid)
        if self.status == "open":
            raise TimeoutError(f"job {jid} has not ended in time; `holdfast jobs why {jid}` shows why")
        raise JobNotFound(f"neither job {jid} nor a result of it is kept", "HF_JOB_NOT_FOUND")


class Await(Spoken, frozen=True, gc=False):
    """Ask for the ends of jobs, and mark the open ones, so that their end is published.

    Answers an Outcome a jid, in order. The message comes on the channel `<root>e:r:<jid>`; asking again then
    tells the outcome. Core: verbs/await.lua.
    """

    verb: ClassVar[str] = "await"

    jids: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> list[Outcome]:
        return [
            _outcome(jid, text(reply[at]), reply[at + 1])
            for jid, at in zip(self.jids, range(0, len(reply), 2), strict=True)
        ]


def _outcome(jid: str, status: str, payload: Any) -> Outcome:
    if status == "done":
        return Outcome(status, payload)
    if status == "failed":
        group, message = msgspec.msgpack.decode(payload) if payload else ("", "")
        return Outcome(status, None, JobFailed(text(group), text(message), jid))
    if status == "gone" and payload:
        who, when, *_ = msgspec.msgpack.decode(payload)
        return Outcome("cancelled", None, JobCancelled(text(who), when / 1000, jid))
    return Outcome(status)


VERBS: Mapping[str, type[Spoken]] = {
    kind.verb: kind for kind in (Put, Cancel, CancelBy, Move, SetPriority, JobGet, JobsComplete, Await)
}
