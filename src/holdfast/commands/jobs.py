"""Commands about jobs: put, find, cancel and move them."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, cast

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
    TagNames,
    ThrottleNames,
    Whole,
)
from holdfast.commands.base import CommandBase, Reply, Word, note_jids, raise_refusal, refusals_by_index
from holdfast.errors import JobCancelled, JobFailed, JobNotFound, Refused
from holdfast.ids import mint_jid
from holdfast.models import JobFacts, text

Mode = Literal["new", "move", "only", "old"]


def budgets(retries: int, max_losses: int | None) -> Word:
    """Return the budget word of a put: retries alone, which then also pay for losses, or `retries/max_losses`."""
    return retries if max_losses is None else f"{retries}/{max_losses}"


class PutBase(CommandBase, frozen=True, gc=False):
    """The base of the puts. A generated jid, or one that must be new, identifies a repeat, so no request id is needed."""

    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    @property
    def numbered(self) -> bool:
        return getattr(self, "mode", "new") in ("move", "old")

    @property
    def generated_jids(self) -> Sequence[str]:
        """The jids, if they were generated for this call, so that only this call can have put them; else none."""
        return []

    @property
    def repeat_advice(self) -> str:
        jid = getattr(self, "jid", "")
        if jid:
            return f"putting it again with jid={jid!r} and only_new=True is safe"
        return "check before you put them again, unless each has a jid of its own and only_new=True"


class Put(PutBase, frozen=True, gc=False):
    """Put one job. Returns its jid. A put that is repeated after a lost reply never puts a second job.

    `data` is JSON bytes; `delay_ms` is how long the job stays scheduled. `mode`: `new` for a generated jid; `move` for a
    jid of the caller (an existing job is moved here); `only` for a job that must not exist with other content; `old` is
    `move` for a job that must exist. With `max_losses`, lost attempts are counted against that number in place of
    `retries`. Raises JobExists, JobNotFound, QueueFull. Core: verbs/put.lua.
    """

    verb: ClassVar[str] = "put"

    queue: Name
    klass: Name
    data: bytes = b"{}"
    jid: Name = msgspec.field(default_factory=mint_jid)
    priority: Priority = 0
    retries: Retries = 5
    delay_ms: Milliseconds = 0
    mode: Mode = "new"
    max_losses: Losses | None = None

    @property
    def generated_jids(self) -> Sequence[str]:
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
            raise_refusal(reply[2])
        if self.mode != "new":
            note_jids((self.jid,), reply)
        return self.jid


class PutMany(PutBase, frozen=True, gc=False):
    """Put up to 512 jobs that share queue and options. Returns a jid or refusal for each job, in order.

    `jobs` is flat: jid, klass, data, jid, klass, data, … Core: verbs/put.lua.
    """

    verb: ClassVar[str] = "put"

    @property
    def generated_jids(self) -> Sequence[str]:
        return [str(jid) for jid in self.jobs[::3]] if self.mode == "new" else []

    queue: Name
    jobs: Sequence[str | bytes]
    priority: Priority = 0
    retries: Retries = 5
    delay_ms: Milliseconds = 0
    mode: Mode = "new"
    max_losses: Losses | None = None

    def words(self) -> Sequence[Word]:
        paid = budgets(self.retries, self.max_losses)
        return (self.mode, self.queue, self.priority, paid, self.delay_ms, *self.jobs)

    def read(self, reply: Reply) -> Sequence[str | Refused]:
        jids = cast("list[str | Refused]", list(self.jobs[::3]))
        if len(reply) > 1:
            for index, refused in refusals_by_index(reply).items():
                if refused is not None:
                    jids[index] = refused
        if self.mode != "new":
            note_jids(jids, reply)
        return jids


class Cancel(CommandBase, frozen=True, gc=False):
    """Delete up to 512 jobs. Returns True for each that was cancelled, False for unknown or complete ones.

    A worker that runs one is notified, at the latest by its next heartbeat. Core: verbs/cancel.lua.
    """

    verb: ClassVar[str] = "cancel"
    request_id_at: ClassVar[int] = 0

    jids: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> list[bool]:
        return [bool(result) for result in reply]


class CancelBy(Cancel, frozen=True, gc=False):
    """Delete jobs as `cancel` does, and record `who` for jobs that ran or are awaited. Core: verbs/cancel.lua."""

    verb: ClassVar[str] = "cancel_by"

    who: OptionalName = ""

    def words(self) -> Sequence[Word]:
        return (self.who, *self.jids)


def list_pairs(
    tags: Sequence[str] | None, throttles: Sequence[str] | None, depends: Sequence[str] = ()
) -> list[Word]:
    """Return the lists of a job as (option, value) pairs. None: not given; empty: the job gets none."""
    pairs: list[Word] = []
    if tags is not None and not tags:
        pairs += ("untagged", "")
    if throttles is not None and not throttles:
        pairs += ("unthrottled", "")
    for option, values in (("tag", tags or ()), ("throttle", throttles or ()), ("depends", depends)):
        for value in values:
            pairs += (option, value)
    return pairs


class Move(CommandBase, frozen=True, gc=False):
    """Move a job in any state to `queue`; a worker that runs it loses the lease.

    Empty `data`, `klass` and `depends`, and None, keep the values of the job. Returns the jid. Raises JobNotFound,
    DependencyRefused. Core: verbs/move.lua.
    """

    verb: ClassVar[str] = "move"
    request_id_at: ClassVar[int] = 0
    adds: ClassVar[bool] = True

    queue: Name
    jid: Name
    delay_ms: Milliseconds = 0
    data: bytes = b""
    priority: Priority | None = None
    klass: OptionalName = ""
    retries: Retries | None = None
    tags: TagNames | None = None
    throttles: ThrottleNames | None = None
    depends: ParentJids = ()

    def words(self) -> Sequence[Word]:
        priority: Word = "" if self.priority is None else self.priority
        retries: Word = "" if self.retries is None else self.retries
        pairs = list_pairs(self.tags, self.throttles, self.depends)
        head = self.queue, self.delay_ms, self.jid, self.data, priority, self.klass, retries
        return (*head, len(pairs) // 2, *pairs)

    def read(self, reply: Reply) -> str:
        return text(reply)


class SetPriority(CommandBase, frozen=True, gc=False):
    """Set the priority of jobs; waiting ones change their place in the queue. Returns True for each known job.

    Core: verbs/reprioritise.lua.
    """

    verb: ClassVar[str] = "priority"
    adds: ClassVar[bool] = True

    priority: Priority
    jids: Names

    def words(self) -> Sequence[Word]:
        return (self.priority, *self.jids)

    def read(self, reply: Reply) -> list[bool]:
        return [bool(result) for result in reply]


class JobGet(CommandBase, frozen=True, gc=False):
    """Look up jobs. Returns the facts of each, or None for an unknown jid, in order. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "job_get"
    reads: ClassVar[bool] = True

    jids: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> list[JobFacts | None]:
        return [JobFacts.from_job_row(row) if row else None for row in reply]


class JobsComplete(CommandBase, frozen=True, gc=False):
    """List the jids of completed jobs, newest first. Core: verbs/inspect.lua."""

    verb: ClassVar[str] = "jobs_complete"
    reads: ClassVar[bool] = True

    offset: Whole = 0
    count: Count = 25

    def words(self) -> Sequence[Word]:
        return (self.offset, self.count)

    def read(self, reply: Reply) -> list[str]:
        return [text(jid) for jid in reply]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The status of an awaited job: `open`, `done` with its result, `failed` or `cancelled` with its error, or `gone`."""

    status: str
    result: bytes | None = None
    error: JobFailed | JobCancelled | None = None

    def result_of(self, jid: str, flags: str = "", hint: str = "") -> bytes | None:
        """Return the result of a job that is done; `flags` complete the command line that an error names.

        `hint` is what the error of a job that has not ended adds. Raises JobFailed, JobCancelled, JobNotFound or TimeoutError for any other status.
        """
        if self.status == "done":
            return self.result
        # A new exception each time, because raising one changes it.
        if isinstance(self.error, JobFailed):
            raise JobFailed(self.error.group, self.error.message, jid)
        if self.error is not None:
            raise JobCancelled(self.error.by, self.error.at, jid)
        if self.status == "open":
            raise TimeoutError(
                f"job {jid} has not ended in time{hint}; `holdfast jobs why{flags} {jid}` shows why"
            )
        raise JobNotFound(f"neither job {jid} nor its result is kept", "HF_JOB_NOT_FOUND")


class Await(CommandBase, frozen=True, gc=False):
    """Look up how jobs ended, and mark the open ones, so that their end is published.

    Returns an Outcome for each jid, in order. The message is published on the channel `<root>e:r:<jid>`; send the
    command again then. Core: verbs/await.lua.
    """

    verb: ClassVar[str] = "await"

    jids: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> list[Outcome]:
        return [
            _outcome(jid, text(reply[at]), reply[at + 1])
            for jid, at in zip(self.jids, range(0, len(reply), 2), strict=True)
        ]


def _outcome(jid: str, status: str, payload: Reply) -> Outcome:
    if status == "done":
        return Outcome(status, payload)
    if status == "failed":
        group, message = msgspec.msgpack.decode(payload) if payload else ("", "")
        return Outcome(status, None, JobFailed(text(group), text(message), jid))
    if status == "gone" and payload:
        who, when, *_ = msgspec.msgpack.decode(payload)
        return Outcome("cancelled", None, JobCancelled(text(who), when / 1000, jid))
    return Outcome(status)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (Put, Cancel, CancelBy, Move, SetPriority, JobGet, JobsComplete, Await)
}
