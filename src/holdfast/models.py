"""What is talked about: frozen data, read from the core's replies. Times are whole milliseconds of the
store's clock unless a name says otherwise; properties ending in no unit are seconds."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

# Lease end, lease length, token, priority, attempts, retries, remaining, losses, created, queued, flags; behind
# them the queue and the klass, each with its length in a byte before it.
_FACTS = struct.Struct("<dddhHhhBddH")
_QUEUE_AT = _FACTS.size


def text(value: Any) -> str:
    """A reply value as text; bytes that are none, which another client may have left, show as such."""
    return value.decode("utf-8", "replace") if type(value) is bytes else str(value)


def texts(values: Sequence[Any]) -> tuple[str, ...]:
    """Reply values as text."""
    return tuple([text(value) for value in values])


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why a job failed: its group and message, when in milliseconds, and under which worker."""

    group: str
    message: str
    when_ms: int
    worker: str

    def as_dict(self) -> dict[str, Any]:
        """The mapping that `job.failure` shows."""
        when = self.when_ms / 1000
        return {"group": self.group, "message": self.message, "when": when, "worker": self.worker}


_NAMES_A_GROUP: Final = frozenset(("failed", "failed-retries", "retried"))


class HistoryEntry(msgspec.Struct, frozen=True, gc=False):
    """One line of a job's history; `name` is the queue, or the group of a failure."""

    what: str
    when_ms: int
    attempt: int = 0
    token: int = 0
    worker: str = ""
    name: str = ""
    reason: str = ""

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "HistoryEntry":
        """Read [what, when, attempt, token, worker, name, reason]."""
        what, when, attempt, token, worker, name, reason = row[:7]
        numbers = int(when), int(attempt or 0), int(token or 0)
        return cls(text(what), *numbers, text(worker), text(name), text(reason))

    def as_dict(self) -> dict[str, Any]:
        """The mapping that `job.history` shows: `what`, `when` in seconds, and what is known beside them."""
        entry: dict[str, Any] = {"what": self.what, "when": self.when_ms / 1000}
        if self.name:
            entry["group" if self.what in _NAMES_A_GROUP else "queue"] = self.name
        for key in ("attempt", "token", "worker", "reason"):
            value = getattr(self, key)
            if value:
                entry[key] = value
        return entry


class JobFacts(msgspec.Struct, frozen=True, gc=False):
    """Everything the store knows of one job at one moment.

    `data` is the stored JSON. `token` and `worker` are the lease, 0 and '' when nobody holds one;
    `remaining` counts the retries left, `losses` the leases lost. A row of `pop` fills what a worker
    needs (and `lease_ms`); a row of `job_get` or `peek` fills the rest.
    """

    width: ClassVar[int] = 4

    jid: str
    klass: str
    queue: str
    data: bytes = b"{}"
    token: int = 0
    worker: str = ""
    state: str = "running"
    priority: int = 0
    retries: int = 5
    remaining: int = 5
    attempts: int = 0
    losses: int = 0
    created_ms: int = 0
    queued_ms: int = 0
    expires_ms: int = 0
    lease_ms: int = 0
    flags: int = 0
    popped_ms: int = 0
    ended_ms: int = 0
    due_ms: int = 0
    tags: tuple[str, ...] = ()
    throttles: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    dependents: tuple[str, ...] = ()
    failure: Failure | None = None
    history: tuple[HistoryEntry, ...] = ()
    result: bytes | None = None
    extras: Mapping[str, Any] = {}

    @classmethod
    def from_row(cls, row: Sequence[Any], worker: str) -> "JobFacts":
        """Read a row of `pop`: jid, facts, data, extras."""
        jid, facts, data, extras = row
        end, lease, token, priority, attempts, retries, remaining, losses, created, queued, flags = (
            _FACTS.unpack_from(facts)
        )
        klass_at = _QUEUE_AT + 1 + facts[_QUEUE_AT]
        known: Mapping[str, Any] = msgspec.msgpack.decode(extras) if extras else _NO_EXTRAS
        return cls(
            jid.decode(),
            facts[klass_at + 1 :].decode(),
            facts[_QUEUE_AT + 1 : klass_at].decode(),
            data,
            int(token),
            worker,
            "running",
            priority,
            retries,
            remaining,
            attempts,
            losses,
            int(created),
            int(queued),
            int(end),
            int(lease),
            flags,
            extras=known,
        )

    @classmethod
    def from_job_row(cls, row: Sequence[Any]) -> "JobFacts":
        """Read a row of `job_get` or `peek`."""
        failure = row[23]
        return cls(
            jid=text(row[0]),
            klass=text(row[1]),
            state=text(row[2]),
            queue=text(row[3]),
            worker=text(row[4]),
            priority=int(row[5]),
            retries=int(row[6]),
            remaining=int(row[7]),
            attempts=int(row[8]),
            losses=int(row[9]),
            created_ms=int(row[10]),
            queued_ms=int(row[11]),
            popped_ms=int(row[12]),
            ended_ms=int(row[13]),
            token=int(row[14]),
            expires_ms=int(row[15]),
            due_ms=int(row[16]),
            flags=int(row[17]),
            data=bytes(row[18]),
            tags=texts(row[19]),
            throttles=texts(row[20]),
            dependencies=texts(row[21]),
            dependents=texts(row[22]),
            failure=Failure(text(failure[0]), text(failure[1]), int(failure[2]), text(failure[3]))
            if failure
            else None,
            history=tuple([HistoryEntry.from_row(entry) for entry in row[24]]),
            result=row[25],
        )


_NO_EXTRAS: Final[Mapping[str, Any]] = {}


class Counts(msgspec.Struct, frozen=True, gc=False):
    """How many jobs of one queue are in which state."""

    name: str
    waiting: int = 0
    running: int = 0
    stalled: int = 0
    throttled: int = 0
    scheduled: int = 0
    depends: int = 0
    recurring: int = 0
    paused: bool = False
    failed: int = 0

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Counts":
        """Read a row of `counts`."""
        waiting, running, stalled, throttled, scheduled, depends, recurring, paused, failed = map(
            int, row[1:10]
        )
        return cls(
            text(row[0]),
            waiting,
            running,
            stalled,
            throttled,
            scheduled,
            depends,
            recurring,
            bool(paused),
            failed,
        )

    @property
    def length(self) -> int:
        """Waiting, running, stalled and scheduled jobs together: the `len` of a queue."""
        return self.waiting + self.running + self.stalled + self.scheduled

    def as_dict(self) -> dict[str, Any]:
        """The mapping that `queue.counts` shows."""
        return msgspec.structs.asdict(self)


class Sample(msgspec.Struct, frozen=True, gc=False):
    """Durations of one day: count, mean and deviation in seconds, the 148 buckets, the finer scale."""

    count: int
    mean: float
    std: float
    histogram: tuple[int, ...]
    fine: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Sample":
        """Read [count, mean, std, buckets, fine]."""
        count, mean, std, buckets, fine = row
        numbers = [int(value) for value in fine]
        pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        return cls(int(count), float(mean), float(std), tuple([int(value) for value in buckets]), pairs)

    def as_dict(self) -> dict[str, Any]:
        """The mapping that `queue.stats()` shows for `wait` and `run`."""
        return {"count": self.count, "mean": self.mean, "std": self.std, "histogram": list(self.histogram)}


class Stats(msgspec.Struct, frozen=True, gc=False):
    """One queue on one UTC day: lost leases, jobs still failed, failures, time waited, time run."""

    retries: int
    failed: int
    failures: int
    wait: Sample
    run: Sample

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Stats":
        """Read the reply of `stats`."""
        return cls(
            int(row[0]), int(row[1]), int(row[2]), Sample.from_row(row[3:8]), Sample.from_row(row[8:13])
        )

    def as_dict(self) -> dict[str, Any]:
        """The mapping that `queue.stats()` shows."""
        return {
            "retries": self.retries,
            "failed": self.failed,
            "failures": self.failures,
            "wait": self.wait.as_dict(),
            "run": self.run.as_dict(),
        }


class CoreInfo(msgspec.Struct, frozen=True, gc=False):
    """What the core says of itself and of this root; `heartbeat` and `grace` are seconds."""

    version: str
    digest: str
    schema: int
    epoch: str
    now_ms: int
    is_test: bool
    denied: tuple[str, ...]
    heartbeat: float = 60.0
    grace: float = 10.0

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "CoreInfo":
        """Read the reply of `info`."""
        denied = text(row[6])
        return cls(
            text(row[0]),
            text(row[1]),
            int(row[2]),
            text(row[3]),
            int(row[4]),
            bool(int(row[5])),
            tuple(denied.split(",")) if denied else (),
            float(row[7]),
            float(row[8]),
        )
