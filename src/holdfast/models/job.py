"""The facts of one job: its attributes, failure, history and progress."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from holdfast.models.layout import FLAGS, GRANTED, fixed_part

Reply = Any
"""A reply of the store, or a part of one: text, a number, None, or a list of these. Only `from_row` and `read` take one."""


def text(value: object) -> str:
    """Return a reply value as text; bytes that are not UTF-8, perhaps of another client, become replacement characters."""
    return value.decode("utf-8", "replace") if type(value) is bytes else str(value)


def texts(values: Sequence[object]) -> tuple[str, ...]:
    """Return reply values as text."""
    return tuple([text(value) for value in values])


_FACTS = fixed_part(GRANTED)

# Flags of a record: what a popped job has, but its row leaves out.
TRACKED: Final = FLAGS["TRACKED"]
EXTRA: Final = FLAGS["EXTRA"]
DEPENDENTS: Final = FLAGS["DEPENDENTS"]
RESULT_TAKEN: Final = FLAGS["DEPENDENTS"] | FLAGS["FLOW"]
"""Other jobs may take the result of such a job, which need not be kept for that."""
HISTORY: Final = FLAGS["HISTORY"]
BUDGETED: Final = FLAGS["BUDGETED"]

_USUAL_LOSSES: Final = 3

State = Literal["waiting", "running", "stalled", "scheduled", "depends", "throttled", "complete", "failed"]


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why a job failed: its group and message, when in milliseconds, and under which worker."""

    group: str
    message: str
    when_ms: int
    worker: str

    def as_dict(self) -> dict[str, object]:
        """Return the mapping that `job.failure` shows."""
        when = self.when_ms / 1000
        return {"group": self.group, "message": self.message, "when": when, "worker": self.worker}


_NAMES_A_GROUP: Final = frozenset(("failed", "failed-retries", "retried"))
_PAID: Final = frozenset(("crashed", "lost"))
_REFUSED: Final = {
    "complete": "its result was refused",
    "fail": "its failure was refused",
    "retry": "its retry was refused",
    "heartbeat": "its heartbeat was refused",
}
"""Lines of lost attempts: their `name` is the budget that was charged, `losses` or `retries`."""


class HistoryEntry(msgspec.Struct, frozen=True, gc=False):
    """One line of a job's history; `name` is the queue, the group of a failure, or the budget charged for a loss.

    A line that was added by `log` has its own `what`, and `data`. In a line ``refused``, `reason` is the report that a worker
    made of an attempt that it had lost (complete, fail, retry, heartbeat), and `after` of the data the seconds since the loss.
    """

    what: str
    when_ms: int
    attempt: int = 0
    token: int = 0
    worker: str = ""
    name: str = ""
    reason: str = ""
    data: Mapping[str, object] = {}

    @classmethod
    def from_row(cls, row: Sequence[Reply]) -> "HistoryEntry":
        """Read [what, when, attempt, token, worker, name, reason], and the JSON object of a logged line."""
        what, when, attempt, token, worker, name, reason = row[:7]
        numbers = int(when), int(attempt or 0), int(token or 0)
        data = _logged(row[7]) if len(row) > 7 and row[7] else _NO_EXTRAS
        return cls(text(what), *numbers, text(worker), text(name), text(reason), data)

    @property
    def refusal(self) -> str:
        """Return in words that a worker came back to an attempt that it had lost, "" of any other line."""
        after, refused = self.data.get("after"), _REFUSED.get(self.reason, "")
        if self.what != "refused" or not refused or not isinstance(after, int | float):
            return ""
        return f"worker {self.worker} came back after {after:.3g} s; {refused}"

    def as_dict(self) -> dict[str, object]:
        """Return the mapping that `job.history` shows: `what`, `when` in seconds, and whatever else is known."""
        entry: dict[str, object] = {**self.data, "what": self.what, "when": self.when_ms / 1000}
        if self.name and self.what in _PAID:
            entry["paid"] = self.name
        elif self.name:
            entry["group" if self.what in _NAMES_A_GROUP else "queue"] = self.name
        for key in ("attempt", "token", "worker", "reason"):
            value = getattr(self, key)
            if value:
                entry[key] = value
        return entry


class Progress(msgspec.Struct, frozen=True, gc=False):
    """The progress that a running job reported: a fraction from 0 to 1, a note, and when."""

    fraction: float
    note: str = ""
    when_ms: int = 0


class JobFacts(msgspec.Struct, frozen=True, gc=False):
    """Everything the store knows about one job at one moment.

    `data` is the stored JSON. `token` and `worker` are those of the lease, 0 and '' without one. `remaining` is the
    number of retries left, `losses` the number of lost leases. A row of `pop` has what a worker needs (and `lease_ms`);
    a row of `job_get` or `peek` has the rest. `options` are those of the put (`expires` as a time), `log` the lines of
    the last report, `earlier` the data of earlier attempts by number. `scheduled_for_ms` is the moment that a recurring job put it for, 0 for others.
    `policies` are, for a job of a flow, what becomes of it if each of its `dependencies` does not complete.
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
    options: Mapping[str, str | int] = {}
    progress: Progress | None = None
    log: tuple[str, ...] = ()
    spawned_from: str = ""
    tracked: bool = False
    earlier: tuple[tuple[int, bytes], ...] = ()
    scheduled_for_ms: int = 0
    policies: tuple[str, ...] = ()

    @classmethod
    def from_row(cls, row: Sequence[Reply], worker: str) -> "JobFacts":
        """Read a row of `pop`: jid, facts, data, extras."""
        jid, facts, data, extras = row
        end, lease, token, priority, attempts, retries, remaining, losses, created, queued, flags, length = (
            _FACTS.unpack_from(facts)
        )
        klass_at = _FACTS.size + length
        facts_of_row = cls(
            jid.decode(),
            facts[klass_at + 1 :].decode(),
            facts[_FACTS.size : klass_at].decode(),
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
        )
        if not extras:
            return facts_of_row
        try:
            return _with_extras(facts_of_row, extras)
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError, IndexError):
            # The record was written by another program than the core. The job itself is readable, and must not be lost.
            return facts_of_row

    @classmethod
    def from_job_row(cls, row: Sequence[Reply]) -> "JobFacts":
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
            options=_options(row[26]),
            progress=_progress(row[27]),
            log=texts(row[28]),
            spawned_from=text(row[29]),
            tracked=bool(row[30]),
            earlier=tuple([(int(row[31][at]), bytes(row[31][at + 1])) for at in range(0, len(row[31]), 2)]),
            scheduled_for_ms=int(row[32]) if len(row) > 32 else 0,
            policies=texts(row[33]) if len(row) > 33 else (),
        )

    @property
    def attempt(self) -> int:
        """The number of this attempt in the job's queue, 1 for the first: one more than the retries and losses paid there.

        An attempt that cost nothing, because its worker was stopped, is made again under its number.
        """
        paid = self.retries - self.remaining + (0 if self.max_losses is None else self.losses)
        return max(1, min(self.attempts, 1 + paid))

    @property
    def max_losses(self) -> int | None:
        """How many losses the job may have; None if losses count against its retries."""
        if not self.flags & BUDGETED:
            return None
        return int(self.options.get("losses", _USUAL_LOSSES))

    def all_history(self) -> tuple[HistoryEntry, ...]:
        """Return the history, oldest first. That of a popped job is derived from its row."""
        if self.history or not self.lease_ms:
            return self.history
        put = HistoryEntry("put", self.created_ms, name=self.queue)
        return put, HistoryEntry("popped", self.token, self.attempts, self.token, self.worker, self.queue)


_NO_EXTRAS: Final[Mapping[str, object]] = {}


def _logged(data: bytes) -> Mapping[str, object]:
    """Return the JSON object of a logged line. Anything else, which another client may have left, is shown as text."""
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {"data": text(data)}


def _with_extras(facts: JobFacts, packed: bytes) -> JobFacts:
    """Return a popped job with the extras of its row: t tags, k throttles, o options, s template, m its moment, e last failure."""
    known: dict[str, Reply] = msgspec.msgpack.decode(packed)
    failure = known.get("e")
    return msgspec.structs.replace(
        facts,
        tags=tuple(known.get("t", ())),
        throttles=_with_own(known["k"], facts.queue) if "k" in known else (),
        options={
            name: ":".join(map(str, value)) if name == "backoff" else value
            for name, value in known.get("o", {}).items()
        },
        spawned_from=known.get("s", ""),
        scheduled_for_ms=int(known.get("m", 0)),
        failure=Failure(text(failure[0]), text(failure[1]), int(failure[2]), text(failure[3]))
        if failure
        else None,
    )


def _with_own(named: Sequence[str], queue: str) -> tuple[str, ...]:
    own = f"ql:q:{queue}"
    return (*(name for name in named if name != own), own)


def _options(pairs: Sequence[Reply]) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        found[text(name)] = value if isinstance(value, int) else text(value)
    return found


def _progress(row: Sequence[Reply]) -> Progress | None:
    return Progress(float(row[0]), text(row[1]), int(row[2])) if row else None
