"""Commands of operators: search for jobs, change many of them, and keep track of that."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from holdfast.commands.base import Command, CommandBase, Reply, Word
from holdfast.commands.views import Cursor
from holdfast.errors import Refused, refusal
from holdfast.models import text, texts
from holdfast.models.job import TRACKED

SCANNED: Final = frozenset(
    (
        "waiting", "running", "stalled", "scheduled", "depends", "throttled", "failed", "completed", "tracked", "group",
        "tagged", "holders", "pending",
    )
)  # fmt: skip
"""The sets of jobs that can be scanned."""
MAX_CHANGED: Final = 256
"""The largest number of jobs in one Act."""

Action = Literal[
    "retry", "fail", "move", "cancel", "delete", "expire", "run", "delay", "priority", "retries", "data", "tag", "untag",
    "track", "untrack", "move-back",
]  # fmt: skip


class JobRow(msgspec.Struct, frozen=True, gc=False):
    """What a search compares of one job; times are 0 where there is none.

    `state` is that of the queue's counts: a job whose lease was lost and which waits again is waiting. `due_ms`: when a
    scheduled job is due, or a lease ends. Tags, failure and data are there if the scan asked for them.
    """

    jid: str
    klass: str = ""
    queue: str = ""
    state: str = ""
    priority: int = 0
    retries: int = 0
    remaining: int = 0
    attempts: int = 0
    losses: int = 0
    created_ms: int = 0
    queued_ms: int = 0
    popped_ms: int = 0
    ended_ms: int = 0
    due_ms: int = 0
    worker: str = ""
    tracked: bool = False
    tags: tuple[str, ...] = ()
    group: str = ""
    message: str = ""
    failed_ms: int = 0
    data: bytes = b""


_STATES: Final = (
    "",
    "waiting",
    "running",
    "complete",
    "failed",
    "scheduled",
    "depends",
    "throttled",
    "stalled",
)
_ROW: Final = struct.Struct("<BHhHhhBddddd")
_NAMES_AT: Final = _ROW.size
_FIRST: Final = 2
_WIDTH: Final = 8
_HELD: Final = (_STATES.index("running"), _STATES.index("stalled"))
_unpack = msgspec.msgpack.Decoder().decode


def _row(
    jid: bytes, facts: bytes, data: bytes, tags: bytes, group: bytes, message: bytes, failed: int
) -> JobRow:
    numbers: tuple[Any, ...] = _ROW.unpack_from(facts)
    state: int = numbers[0]
    flags, priority, attempts, retries, remaining, losses = numbers[1:7]
    klass_at = _NAMES_AT + 1 + facts[_NAMES_AT]
    worker_at = klass_at + 1 + facts[klass_at]
    times: list[int] = [int(numbers[at]) for at in range(7, 12)]
    created, queued, popped, ended, due = times
    return JobRow(
        text(jid),
        text(facts[klass_at + 1 : worker_at]),
        text(facts[_NAMES_AT + 1 : klass_at]),
        _STATES[state],
        priority,
        retries,
        remaining,
        attempts,
        losses,
        created,
        queued,
        popped,
        ended,
        due,
        text(facts[worker_at + 1 :]) if state in _HELD else "",
        bool(flags & TRACKED),
        _tags(tags) if tags else (),
        text(group) if group else "",
        text(message) if message else "",
        failed,
        data,
    )


def _tags(packed: bytes) -> tuple[str, ...]:
    try:
        found: Any = _unpack(packed)
        return texts([name for name in found if isinstance(name, str | bytes)])
    except (msgspec.MsgspecError, TypeError):
        return ()  # written by another program than the core


class ScanPage(msgspec.Struct, frozen=True, gc=False):
    """A page of a scan: its jobs, the place of each, how many entries it looked at, and how many the set has.

    `next` is the cursor of the next page, None after the last one.
    """

    jobs: tuple[JobRow, ...]
    scores: tuple[bytes, ...]
    looked: int
    size: int
    next: Cursor | None


class Scan(CommandBase, frozen=True, gc=False):
    """Read up to `count` (512; 0 for the size alone) jobs of a set after the cursor `after`, with what a search compares.

    `set` is one of SCANNED, `name` its owner; `wants` has `d` for data, `t` for tags, `e` for failures. Entries whose job
    is gone are left out. Core: verbs/scan.lua.
    """

    verb: ClassVar[str] = "scan"
    reads: ClassVar[bool] = True

    set: str
    name: str = ""
    after: Cursor | None = None
    count: int = 256
    wants: str = ""

    def words(self) -> Sequence[Word]:
        return (self.set, self.name, *(self.after or ("", "")), self.count, self.wants)

    def read(self, reply: Reply) -> ScanPage:
        found = [at for at in range(_FIRST, len(reply), _WIDTH) if reply[at + 2]]
        rows = [_row(reply[at], *reply[at + 2 : at + _WIDTH]) for at in found]
        scores = [reply[at + 1] for at in found]
        looked = (len(reply) - _FIRST) // _WIDTH
        after = None if reply[0] or not looked else (text(reply[-_WIDTH + 1]), text(reply[-_WIDTH]))
        return ScanPage(tuple(rows), tuple(scores), looked, reply[1], after)


class Progress(msgspec.Struct, frozen=True, gc=False):
    """How far an operation got: who runs it, how long it may be silent, its cursor, what it looked at since the last call."""

    id: str = ""
    runner: str = ""
    length_ms: int = 0
    cursor: str = ""
    looked: int = 0
    matched: int = 0

    def without(self, count: int) -> "Progress":
        """Return what is left to note when a call has done and noted the first `count` jobs of several."""
        looked, matched = max(self.looked - count, 0), max(self.matched - count, 0)
        return msgspec.structs.replace(self, looked=looked, matched=matched)


_NO_OPERATION: Final = Progress()


class Act(CommandBase, frozen=True, gc=False):
    """Change up to 256 jobs. Returns for each True (changed), False (nothing to change) or the Refused.

    A call does a limited amount of work: if there are fewer results than jobs, send the others in another call, with what
    is left of the progress. (The call that reaches the last job notes the cursor; others count their jobs.)
    `jobs` are pairs of a jid and the value of the action for that job, "" for the `common` one. Values: a queue ("" for
    that of the job) for retry, fail and move; a number for priority and retries; milliseconds for delay; tags, one a line,
    for tag and untag; the SHA-1 of the present data in hex and the new data for data. With an operation its progress is
    noted in the same call. Core: verbs/act.lua.
    """

    verb: ClassVar[str] = "act"
    request_id_at: ClassVar[int] = 0

    action: Action
    jobs: Sequence[tuple[str, str | bytes]]
    common: str = ""
    who: str = ""
    operation: Progress = _NO_OPERATION

    def words(self) -> Sequence[Word]:
        pairs = [word for pair in self.jobs for word in pair]
        return (self.action, self.common, self.who, *msgspec.structs.astuple(self.operation), *pairs)

    def read(self, reply: Reply) -> list[bool | Refused]:
        return [refusal(result) if isinstance(result, bytes) else bool(result) for result in reply]


class OperationSet(CommandBase, frozen=True, gc=False):
    """Start an operation, take over one that nobody runs, or end one. Raises WrongState, OperationNotFound.

    `detail` is what it does (JSON) for `start`, its last state for `finish`: done, failed, stopped or undone. Without a
    runner anybody may finish it. Returns whether that changed something. Core: nouns/operation.lua.
    """

    verb: ClassVar[str] = "operation_set"
    request_id_at: ClassVar[int] = 0

    mode: Literal["start", "take", "finish"]
    id: str
    runner: str = ""
    length_ms: int = 0
    detail: str = ""

    def words(self) -> Sequence[Word]:
        return (self.id, self.runner, self.length_ms, self.detail, self.mode)

    def read(self, reply: Reply) -> bool:
        return bool(reply)


class OperationFacts(msgspec.Struct, frozen=True, gc=False):
    """An operation: what it does (`spec`, JSON), its state, and how far it got.

    `state` is running, stopped, done, failed or undone; a running one whose `lease_ms` is over is not run by anybody.
    """

    id: str
    spec: str
    state: str
    runner: str
    lease_ms: int
    created_ms: int
    updated_ms: int
    cursor: str
    looked: int
    matched: int
    changed: int
    same: int
    refused: int

    @classmethod
    def from_row(cls, id: Reply, flat: Sequence[Reply]) -> "OperationFacts":
        """Read an id and the flat list of fields."""
        found = {text(flat[at]): text(flat[at + 1]) for at in range(0, len(flat), 2)}

        def number(name: str) -> int:
            return int(float(found.get(name) or 0))

        return cls(
            text(id),
            spec=found.get("spec", ""),
            state=found.get("state", ""),
            runner=found.get("runner", ""),
            lease_ms=number("lease"),
            created_ms=number("created"),
            updated_ms=number("updated"),
            cursor=found.get("cursor", ""),
            looked=number("looked"),
            matched=number("matched"),
            changed=number("changed"),
            same=number("same"),
            refused=number("refused"),
        )


class Operations(CommandBase, frozen=True, gc=False):
    """List up to 64 of the last hundred operations, newest first. Core: nouns/operation.lua."""

    verb: ClassVar[str] = "operations"
    reads: ClassVar[bool] = True

    offset: int = 0
    count: int = 25

    def words(self) -> Sequence[Word]:
        return (self.offset, self.count)

    def read(self, reply: Reply) -> list[OperationFacts]:
        return [OperationFacts.from_row(*row) for row in reply]


class OperationDetail(msgspec.Struct, frozen=True, gc=False):
    """An operation, its first refusals as (jid, reason), and a part of the jobs that it changed.

    `changed` has (jid, what undoes it) pairs, `chunks` says in how many parts they are kept; an hour after the last change
    there are none.
    """

    facts: OperationFacts
    refused: tuple[tuple[str, str], ...]
    changed: tuple[tuple[str, str], ...]
    chunks: int


class OperationGet(CommandBase, frozen=True, gc=False):
    """Look up an operation, with up to 64 of the parts in which its changed jobs are kept. None if it is not known.

    Core: nouns/operation.lua.
    """

    verb: ClassVar[str] = "operation_get"
    reads: ClassVar[bool] = True

    id: str
    offset: int = 0
    count: int = 0

    def words(self) -> Sequence[Word]:
        return (self.id, self.offset, self.count)

    def read(self, reply: Reply) -> OperationDetail | None:
        id, flat, refused, chunks, count = reply
        if not flat:
            return None
        return OperationDetail(
            OperationFacts.from_row(id, flat),
            tuple([(text(jid), refusal(reason).detail) for jid, reason in refused]),
            tuple(
                [
                    (text(jid), text(undo))
                    for chunk in chunks
                    for jid, undo in zip(chunk[::2], chunk[1::2], strict=True)
                ]
            ),
            int(count),
        )


class Audited(CommandBase, frozen=True, gc=False):
    """A command of an operator with its line of the audit log: both happen, or none. Core: doors/native.lua."""

    verb: ClassVar[str] = "audited"
    request_id_at: ClassVar[int] = 0

    who: str
    what: str
    target: str
    detail: str
    within: Command[Any]

    def words(self) -> Sequence[Word]:
        at, words = self.within.request_id_at, list(self.within.words())
        if at >= 0:
            words[at:at] = ["", 0]
        return (self.who, self.what, self.target, self.detail, self.within.verb, *words)

    def read(self, reply: Reply) -> Any:
        return self.within.read(reply)


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (Scan, Act, OperationSet, Operations, OperationGet, Audited)
}
