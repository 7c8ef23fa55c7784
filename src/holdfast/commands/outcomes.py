"""Commands that end a lease otherwise than by completing the job for good."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal

from holdfast.commands.base import Reply, Spoken, Word, refuse
from holdfast.commands.leases import Held, Lease
from holdfast.errors import refusal

HowReleased = Literal["preempted", "crashed", "lost", "timed-out", "unknown"]
"""How leases come to be given back."""

OWN_BACKOFF: Final = -1
"""As delay of a retry: by the backoff that the job was put with."""

MOST_TOLD: Final = 128
"""Jobs of one call of these verbs: each gets a line of history."""


class Advance(Spoken, frozen=True, gc=False):
    """Complete one job and put it into `next_queue` under the same jid. Answers the jid.

    Raises LeaseLost. Core: verbs/advance.lua.
    """

    verb: ClassVar[str] = "advance"
    settles: ClassVar[bool] = True

    worker: str
    next_queue: str
    job: Held
    delay_ms: int = 0
    data: bytes = b""

    def words(self) -> Sequence[Word]:
        return (self.worker, self.next_queue, self.delay_ms, self.job.jid, self.job.token, self.data)

    def read(self, reply: Reply) -> str:
        if len(reply) > 1:
            refuse(reply[2])
        return self.job.jid


class Retry(Spoken, frozen=True, gc=False):
    """Give one job back for another try after `delay_ms`; it costs a retry. OWN_BACKOFF: as the job itself says.

    Without a backoff of its own it waits a second, then twice as long each time, up to ten minutes. Answers the retries left, -1 when there were none and the job failed (in `group`, or in
    `failed-retries-<queue>`). Raises LeaseLost. Core: verbs/retry.lua. `lines`: as those of `Fail`.
    """

    verb: ClassVar[str] = "retry"

    worker: str
    job: Held
    delay_ms: int = 0
    group: str = ""
    message: str = ""
    data: bytes = b""
    lines: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        job = self.job
        return (self.worker, self.delay_ms, self.group, self.message, job.jid, job.token, self.data)

    def read(self, reply: Reply) -> int:
        answer = reply[0]
        if isinstance(answer, int):
            return answer
        raise refusal(answer)


class Fail(Spoken, frozen=True, gc=False):
    """Fail one job for good, under a failure group. Answers its jid. Raises LeaseLost. Core: verbs/fail.lua.

    `lines`, which the job logged, are not sent with it: a worker reports them first.
    """

    verb: ClassVar[str] = "fail"
    settles: ClassVar[bool] = True

    worker: str
    job: Held
    group: str
    message: str = ""
    data: bytes = b""
    lines: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        return (self.worker, self.group, self.message, self.job.jid, self.job.token, self.data)

    def read(self, reply: Reply) -> str:
        if len(reply) > 1:
            refuse(reply[2])
        return self.job.jid


class Expire(Spoken, frozen=True, gc=False):
    """Give back the leases of a worker that died: the jobs are handed out again at once, one retry poorer.

    Answers how many were given back. Core: verbs/release.lua.
    """

    verb: ClassVar[str] = "expire"

    leases: Sequence[Lease]

    def words(self) -> Sequence[Word]:
        return [word for lease in self.leases for word in (lease.worker, lease.jid, lease.token)]

    def read(self, reply: Reply) -> int:
        return int(reply)


class Release(Spoken, frozen=True, gc=False):
    """Release leases of jobs that have not ended, with the reason. Returns how many were still held.

    `preempted`: the worker had to stop (`cause`: "TERM"); it costs nothing, and the jobs are the next of their priority.
    `crashed`: their process died (`cause`: "SIGSEGV", "exit status 3"); `lost`: the cause is unknown. Both are paid from
    `max_losses`, by class jobs with a retry, and the jobs are handed out again at once. `timed-out`: they took longer than
    they may (`cause`: "2 s"), which is paid from `retries`. `unknown`: the worker does not know their code (`cause`: the
    error); they wait for another one, and fail in `group` after the setting `unknown-for`. At most MOST_TOLD leases;
    those that are not held are left alone. Core: verbs/release.lua.
    """

    verb: ClassVar[str] = "release"
    line_at: ClassVar[int] = 0

    leases: Sequence[Lease]
    how: HowReleased
    cause: str = ""
    group: str = ""

    def words(self) -> Sequence[Word]:
        leases = [word for lease in self.leases for word in (lease.worker, lease.jid, lease.token)]
        return (self.how, self.cause, self.group, *leases)

    def read(self, reply: Reply) -> int:
        return int(reply)


class Timeout(Spoken, frozen=True, gc=False):
    """Take the leases of running jobs away at once; they are offered again first. Answers how many.

    Raises WrongState, changing nothing, when one is not running. Core: verbs/timeout.lua.
    """

    verb: ClassVar[str] = "timeout"
    line_at: ClassVar[int] = 0

    jids: Sequence[str]

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[Spoken]] = {
    kind.verb: kind for kind in (Advance, Retry, Fail, Expire, Release, Timeout)
}
