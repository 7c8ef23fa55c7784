"""Commands that end a lease in other ways than completing the job."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal

from holdfast.bounds import Milliseconds, Name, Names, OptionalName
from holdfast.commands.base import CommandBase, Reply, Word, raise_refusal
from holdfast.commands.leases import Held, Lease
from holdfast.errors import refusal

HowReleased = Literal["preempted", "crashed", "lost", "timed-out", "unknown"]
"""Reasons of `Release`."""

OWN_BACKOFF: Final = -1
"""As `delay_ms` of a retry: use the backoff that the job was put with."""

MAX_OUTCOMES: Final = 128
"""The largest number of jobs in one call of these verbs."""


class Advance(CommandBase, frozen=True, gc=False):
    """Complete one job in its queue and put it into `next_queue` under the same jid. Returns the jid.

    Raises LeaseLost. Core: verbs/advance.lua.
    """

    verb: ClassVar[str] = "advance"
    settles: ClassVar[bool] = True

    worker: Name
    next_queue: Name
    job: Held
    delay_ms: Milliseconds = 0
    data: bytes = b""

    def words(self) -> Sequence[Word]:
        return (self.worker, self.next_queue, self.delay_ms, self.job.jid, self.job.token, self.data)

    def read(self, reply: Reply) -> str:
        if len(reply) > 1:
            raise_refusal(reply[2])
        return self.job.jid


class Retry(CommandBase, frozen=True, gc=False):
    """Retry one job after `delay_ms`, which costs a retry. OWN_BACKOFF: use the backoff of the job, else
    `backoff` (as `ExtraOptions` has it), else the default: 1 s, then twice as long each time, up to 10 minutes.

    Returns the retries left, -1 if there were none and the job failed (in `group`, or in `failed-retries-<queue>`).
    `lines`: as in `Fail`. Raises LeaseLost. Core: verbs/retry.lua.
    """

    verb: ClassVar[str] = "retry"

    worker: Name
    job: Held
    delay_ms: Milliseconds = 0
    group: OptionalName = ""
    message: str = ""
    data: bytes = b""
    lines: Sequence[str] = ()
    backoff: str = ""

    def words(self) -> Sequence[Word]:
        job = self.job
        delay = self.backoff or self.delay_ms if self.delay_ms == OWN_BACKOFF else self.delay_ms
        return (self.worker, delay, self.group, self.message, job.jid, job.token, self.data)

    def read(self, reply: Reply) -> int:
        left = reply[0]
        if isinstance(left, int):
            return left
        raise refusal(left)


class Fail(CommandBase, frozen=True, gc=False):
    """Fail one job in a failure group. Returns its jid. Raises LeaseLost. Core: verbs/fail.lua.

    `lines` that the job logged are not part of this call: a worker reports them first.
    """

    verb: ClassVar[str] = "fail"
    settles: ClassVar[bool] = True

    worker: Name
    job: Held
    group: Name
    message: str = ""
    data: bytes = b""
    lines: Sequence[str] = ()

    def words(self) -> Sequence[Word]:
        return (self.worker, self.group, self.message, self.job.jid, self.job.token, self.data)

    def read(self, reply: Reply) -> str:
        if len(reply) > 1:
            raise_refusal(reply[2])
        return self.job.jid


class Expire(CommandBase, frozen=True, gc=False):
    """Release the leases of a worker that died: each job loses a retry and is ready again at once.

    Returns how many were still held. Core: verbs/release.lua.
    """

    verb: ClassVar[str] = "expire"

    leases: Sequence[Lease]

    def words(self) -> Sequence[Word]:
        return [word for lease in self.leases for word in (lease.worker, lease.jid, lease.token)]

    def read(self, reply: Reply) -> int:
        return int(reply)


class Release(CommandBase, frozen=True, gc=False):
    """Release leases of jobs that have not ended, with the reason. Returns how many were still held.

    `preempted`: the worker had to stop (`cause`: "TERM"); it costs nothing, and the jobs are the next of their priority.
    `crashed`: their process died (`cause`: "SIGSEGV", "exit status 3"); `lost`: the cause is unknown. Both count against
    `max_losses` (for class jobs: `retries`), and the jobs are ready again at once. `timed-out`: they exceeded their
    timeout (`cause`: "2 s"), which counts against `retries`. `unknown`: the worker does not have their code (`cause`: the
    error); they wait for another worker, and fail in `group` after the setting `unknown-for`. At most 128 leases; those
    that are not held are ignored. Core: verbs/release.lua.
    """

    verb: ClassVar[str] = "release"
    request_id_at: ClassVar[int] = 0

    leases: Sequence[Lease]
    how: HowReleased
    cause: str = ""
    group: OptionalName = ""

    def words(self) -> Sequence[Word]:
        leases = [word for lease in self.leases for word in (lease.worker, lease.jid, lease.token)]
        return (self.how, self.cause, self.group, *leases)

    def read(self, reply: Reply) -> int:
        return int(reply)


class Timeout(CommandBase, frozen=True, gc=False):
    """End the leases of running jobs at once; these jobs are the next to be leased. Returns how many.

    Raises WrongState, and changes nothing, if one is not running. Core: verbs/timeout.lua.
    """

    verb: ClassVar[str] = "timeout"
    request_id_at: ClassVar[int] = 0

    jids: Names

    def words(self) -> Sequence[Word]:
        return tuple(self.jids)

    def read(self, reply: Reply) -> int:
        return int(reply)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (Advance, Retry, Fail, Expire, Release, Timeout)
}
