"""Commands of workers: take leases, renew them, complete jobs.

`Complete` and `Heartbeat` have two forms: for one job, which raises a refusal, and for many (`…Many`), which returns the
refusals, so that one lost lease does not affect the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Protocol

import msgspec

from holdfast.bounds import Count, LeaseSeconds, Level, Limit, Milliseconds, Name, Names, OptionalName, Whole
from holdfast.commands.base import CommandBase, Reply, Word, milliseconds, raise_refusal, refusal_of
from holdfast.errors import LeaseLost, Refused
from holdfast.models import JobFacts, text
from holdfast.models.layout import LEVEL

WILL_NOT_WAIT = 0
WILL_WAIT = 1
WOKEN = 2
FOUND = 3
"""Modes of a pop: whether the caller is going to wait, was woken, or found the queue by FindWork."""


class Held(Protocol):
    """Anything with the jid and the token of a lease, such as JobFacts."""

    @property
    def jid(self) -> str: ...
    @property
    def token(self) -> int: ...


class Lease(msgspec.Struct, frozen=True, gc=False):
    """A lease: the jid, its token, and the worker that holds it. Empty `data` leaves the data of the job unchanged."""

    jid: Name
    token: Whole
    worker: OptionalName = ""
    data: bytes = b""


class Done(msgspec.Struct, frozen=True, gc=False):
    """A job to complete. A `result` that is not empty is kept for `keep_ms`; empty `data` changes nothing."""

    jid: Name
    token: Whole
    data: bytes = b""
    keep_ms: Milliseconds = 0
    result: bytes = b""


class Popped(list[JobFacts]):
    """The jobs that a pop leased. `due`: seconds until a job of its queues is due, None if none is scheduled."""

    due: float | None = None


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """The result of `CompletePop`: the refusals by jid, and the next jobs."""

    lost: Mapping[str, Refused]
    jobs: Popped


def _queue_words(queues: Sequence[str], mode: int | Sequence[int], level: int) -> list[Word]:
    more = 4 * level
    if isinstance(mode, int):
        return [word for queue in queues for word in (queue, mode + more)]
    return [word for queue, one in zip(queues, mode, strict=True) for word in (queue, one + more)]


def _popped(reply: Sequence[Reply], at: int, worker: str) -> Popped:
    jobs = Popped(_rows(reply, at + 1, worker))
    due = int(reply[at])
    if due >= 0:
        jobs.due = due / 1000
    return jobs


def _rows(reply: Sequence[Reply], at: int, worker: str) -> list[JobFacts]:
    from_row, width = JobFacts.from_row, JobFacts.width
    return [from_row(reply[i : i + width], worker) for i in range(at, len(reply), width)]


def _done_words(jobs: Iterable[Done]) -> list[Word]:
    return [word for job in jobs for word in (job.jid, job.token, job.data, job.keep_ms, job.result)]


def _lost(reply: Sequence[Reply], first: int, last: int) -> dict[str, Refused]:
    lost: dict[str, Refused] = {}
    for at in range(first, last, 2):
        refused = refusal_of(reply[at + 1])
        if refused is not None:
            lost[text(reply[at])] = refused
    return lost


class Pop(CommandBase, frozen=True, gc=False):
    """Lease up to `limit` ready jobs to `worker`. Returns them; an empty list means that none was ready.

    `queues` are tried in order, each by priority and then oldest first. `ttl` is the length of the lease in seconds,
    None for the heartbeat setting of the queue. `mode`, one for all or one for each queue: whether the caller is going
    to wait for a wake-up (WILL_NOT_WAIT, WILL_WAIT, WOKEN, FOUND). Jobs that need a higher `level` are left to other workers.
    Core: verbs/pop.lua.
    """

    verb: ClassVar[str] = "pop"
    request_id_at: ClassVar[int] = 1

    worker: Name
    queues: Names
    limit: Limit = 1
    ttl: LeaseSeconds | None = None
    mode: int | Sequence[int] = WILL_NOT_WAIT
    level: Level = LEVEL

    @property
    def repeat_advice(self) -> str:
        return "popping again is safe: jobs of a lost reply are handed out again when their leases end"

    def words(self) -> Sequence[Word]:
        return (
            self.worker,
            self.limit,
            milliseconds(self.ttl),
            *_queue_words(self.queues, self.mode, self.level),
        )

    def read(self, reply: Reply) -> Popped:
        return _popped(reply, 0, self.worker)


class Found(msgspec.Struct, frozen=True, gc=False):
    """Queues that may have ready jobs, in the order of their first use, then others that have jobs due.

    `due`: seconds until another queue has a job due, None if none has; `has_more`: whether there are more names.
    """

    queues: Sequence[str]
    due: float | None
    has_more: bool


class FindWork(CommandBase, frozen=True, gc=False):
    """List the queues of the namespace that have work, up to `count` names from position `first` on.

    `fleet` is the name shared by all workers that serve the same queues. `mode` WILL_WAIT: the caller is going to wait if
    it serves none of the queues; WOKEN: the caller was woken and can take no more, so another worker is woken and no
    queue is returned. Core: verbs/find_work.lua.
    """

    verb: ClassVar[str] = "find_work"

    fleet: Name
    mode: int
    first: int
    count: Count

    def words(self) -> Sequence[Word]:
        return (self.fleet, self.mode, self.first, self.count)

    def read(self, reply: Reply) -> Found:
        due = int(reply[0])
        queues = dict.fromkeys(map(text, reply[3:]))
        return Found(tuple(queues), due / 1000 if due >= 0 else None, bool(reply[1]))


class CompletePop(CommandBase, frozen=True, gc=False):
    """Complete `jobs` and lease up to `limit` more in the same call, 0 for none.

    Core: verbs/complete.lua.
    """

    verb: ClassVar[str] = "complete_pop"
    request_id_at: ClassVar[int] = 1
    settles: ClassVar[bool] = True

    worker: Name
    queues: Names
    jobs: Sequence[Done]
    limit: Limit = 1
    ttl: LeaseSeconds | None = None
    mode: int | Sequence[int] = WILL_NOT_WAIT
    level: Level = LEVEL

    def words(self) -> Sequence[Word]:
        return (
            self.worker,
            self.limit,
            milliseconds(self.ttl) if self.ttl else 0,
            len(self.queues),
            *_queue_words(self.queues, self.mode, self.level),
            *_done_words(self.jobs),
        )

    def read(self, reply: Reply) -> Settlement:
        end = 1 + 2 * int(reply[0])
        return Settlement(_lost(reply, 1, end) if end > 1 else {}, _popped(reply, end, self.worker))


class Complete(CommandBase, frozen=True, gc=False):
    """Complete one job. Returns `complete`. Raises LeaseLost. Core: verbs/complete.lua."""

    verb: ClassVar[str] = "complete"
    settles: ClassVar[bool] = True

    worker: Name
    job: Held
    data: bytes = b""
    keep_ms: Milliseconds = 0
    result: bytes = b""

    def words(self) -> Sequence[Word]:
        return (self.worker, self.job.jid, self.job.token, self.data, self.keep_ms, self.result)

    def read(self, reply: Reply) -> str:
        if len(reply) > 1:
            raise_refusal(reply[2])
        return "complete"


class CompleteMany(CommandBase, frozen=True, gc=False):
    """Complete many jobs. Returns the refusals by jid; all others are complete. Core: verbs/complete.lua."""

    verb: ClassVar[str] = "complete"
    settles: ClassVar[bool] = True

    worker: Name
    jobs: Sequence[Done]

    def words(self) -> Sequence[Word]:
        return (self.worker, *_done_words(self.jobs))

    def read(self, reply: Reply) -> dict[str, Refused]:
        return _lost(reply, 1, len(reply))


class Heartbeat(CommandBase, frozen=True, gc=False):
    """Renew one lease. Returns its new end in milliseconds of the store's clock.

    `ttl` is in seconds, None for the heartbeat setting of the queue. Raises LeaseLost. Core: verbs/heartbeat.lua.
    """

    verb: ClassVar[str] = "heartbeat"

    worker: Name
    job: Held
    ttl: LeaseSeconds | None = None
    data: bytes = b""

    def words(self) -> Sequence[Word]:
        return (milliseconds(self.ttl), self.worker, self.job.jid, self.job.token, self.data)

    def read(self, reply: Reply) -> int:
        end = int(reply[0])
        if end == 0:
            raise LeaseLost(f"{self.job.jid}: the lease ended", "HF_LEASE_LOST")
        if end < 0:
            raise LeaseLost(f"{self.job.jid}: the job is gone", "HF_JOB_NOT_FOUND")
        return end


class HeartbeatMany(CommandBase, frozen=True, gc=False):
    """Renew many leases, each with its worker. Returns a number for each lease, in order.

    The number is the new end in milliseconds, 0 for a lost lease, -1 for a job that was deleted.
    Core: verbs/heartbeat.lua.
    """

    verb: ClassVar[str] = "heartbeat"

    leases: Sequence[Lease]
    ttl: LeaseSeconds | None = None

    def words(self) -> Sequence[Word]:
        words: list[Word] = [milliseconds(self.ttl)]
        for lease in self.leases:
            words += (lease.worker, lease.jid, lease.token, lease.data)
        return words

    def read(self, reply: Reply) -> list[int]:
        return [int(end) for end in reply]


class Resume(CommandBase, frozen=True, gc=False):
    """Transfer leases to `worker`, which held them under other names; each has the name of its current holder.

    `ttl` is in seconds, None for the heartbeat setting of the queue. Returns the jobs that it holds now, in the same
    attempts; those whose leases were lost are missing. Core: verbs/resume.lua.
    """

    verb: ClassVar[str] = "resume"

    worker: Name
    leases: Sequence[Lease]
    ttl: LeaseSeconds | None = None

    def words(self) -> Sequence[Word]:
        words: list[Word] = [self.worker, milliseconds(self.ttl)]
        for lease in self.leases:
            words += (lease.worker, lease.jid, lease.token)
        return words

    def read(self, reply: Reply) -> list[JobFacts]:
        return _rows(reply, 0, self.worker)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (Pop, FindWork, CompletePop, Complete, Heartbeat, Resume)
}
