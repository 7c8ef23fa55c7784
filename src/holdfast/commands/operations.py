"""Commands of operators: search for jobs, change many of them, and keep track of that."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar

import msgspec

from holdfast.bounds import Count, Milliseconds, Name, OptionalName, Whole
from holdfast.commands.base import AuditedChange, Command, CommandBase, Reply, Word
from holdfast.commands.job_rows import JobRow, placed_by, rows_of, states_of
from holdfast.commands.views import Cursor
from holdfast.errors import Refused, refusal
from holdfast.models import text
from holdfast.settings import check_name

SCANNED: Final = frozenset(
    (
        "waiting", "running", "stalled", "scheduled", "depends", "throttled", "failed", "completed", "tracked", "group",
        "tagged", "holders", "pending", "flow",
    )
)  # fmt: skip
"""The sets of jobs that can be scanned. `flow` are the jobs of a flow that are kept; the score of each is its number."""
MAX_CHANGED: Final = 256
"""The largest number of jobs in one Act."""

R = TypeVar("R")

Action = Literal[
    "retry", "fail", "move", "cancel", "delete", "expire", "run", "delay", "priority", "retries", "data", "tag", "untag",
    "track", "untrack", "move-back",
]  # fmt: skip


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

    set: Name
    name: OptionalName = ""
    after: Cursor | None = None
    count: Count = 256
    wants: str = ""

    def words(self) -> Sequence[Word]:
        return (self.set, self.name, *(self.after or ("", "")), self.count, self.wants)

    def read(self, reply: Reply) -> ScanPage:
        is_last, size, page, records, states, more = reply
        jids, scores = page[::2], page[1::2]
        placed = states_of(states) if states else placed_by(self.set, scores)
        found = rows_of(
            jids, records, placed, more, self.name if self.set == "group" else "", "d" in self.wants
        )
        rows = [(row, score) for row, score in zip(found, scores, strict=True) if row]
        after = None if is_last or not jids else (text(scores[-1]), text(jids[-1]))
        return ScanPage(
            tuple([row for row, _ in rows]), tuple([score for _, score in rows]), len(jids), size, after
        )


class Progress(msgspec.Struct, frozen=True, gc=False):
    """How far an operation got: who runs it, how long it may be silent, its cursor, what it looked at since the last call."""

    id: OptionalName = ""
    runner: OptionalName = ""
    length_ms: Milliseconds = 0
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
    for tag and untag; the SHA-1 of the current data in hex and the new data for data. With an operation its progress is
    noted in the same call. Core: verbs/act.lua.
    """

    verb: ClassVar[str] = "act"
    request_id_at: ClassVar[int] = 0

    action: Action
    jobs: Sequence[tuple[str, str | bytes]]
    common: str = ""
    who: OptionalName = ""
    operation: Progress = _NO_OPERATION

    def words(self) -> Sequence[Word]:
        pairs = [word for pair in self.jobs for word in pair]
        return (self.action, self.common, self.who, *msgspec.structs.astuple(self.operation), *pairs)

    def read(self, reply: Reply) -> list[bool | Refused]:
        return [refusal(result) if isinstance(result, bytes) else bool(result) for result in reply]


class OperationSet(CommandBase, frozen=True, gc=False):
    """Start an operation, take over one that has no runner, or end one. Raises WrongState, OperationNotFound.

    `detail` is what it does (JSON) for `start`, its last state for `finish`: done, failed, stopped or undone. Without a
    runner anybody may finish it. Returns whether that changed something. Core: nouns/operation/operation.lua.
    """

    verb: ClassVar[str] = "operation_set"
    request_id_at: ClassVar[int] = 0

    mode: Literal["start", "take", "finish"]
    id: Name
    runner: OptionalName = ""
    length_ms: Milliseconds = 0
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
    """List up to 64 of the last hundred operations, newest first. Core: nouns/operation/operation.lua."""

    verb: ClassVar[str] = "operations"
    reads: ClassVar[bool] = True

    offset: Whole = 0
    count: Count = 25

    def words(self) -> Sequence[Word]:
        return (self.offset, self.count)

    def read(self, reply: Reply) -> list[OperationFacts]:
        return [OperationFacts.from_row(*row) for row in reply]


class OperationDetail(msgspec.Struct, frozen=True, gc=False):
    """An operation, its first refusals as (jid, reason), and a part of the jobs that it changed.

    `changed` has (jid, what undoes it) pairs, `chunks` is the number of parts in which they are kept; an hour after the last change
    there are none.
    """

    facts: OperationFacts
    refused: tuple[tuple[str, str], ...]
    changed: tuple[tuple[str, str], ...]
    chunks: int


class OperationGet(CommandBase, frozen=True, gc=False):
    """Look up an operation, with up to 64 of the parts in which its changed jobs are kept. None if it is not known.

    Core: nouns/operation/operation.lua.
    """

    verb: ClassVar[str] = "operation_get"
    reads: ClassVar[bool] = True

    id: Name
    offset: Whole = 0
    count: Count = 0

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

    who: Name
    what: str
    target: Name
    detail: str
    within: Command[Any]

    def words(self) -> Sequence[Word]:
        at, words = self.within.request_id_at, list(self.within.words())
        if at >= 0:
            words[at:at] = ["", 0]
        return (self.who, self.what, self.target, self.detail, self.within.verb, *words)

    def read(self, reply: Reply) -> Any:
        return self.within.read(reply)


def audited(who: str, command: Command[R], what: str = "", target: str = "", detail: str = "") -> Command[R]:
    """Return a command that also writes a line of the audit log, if it is known who acts. Raises UsageError.

    The line is `what`, `target` and `detail`, or what the command itself has; without either the command stays as it is.
    """
    line = AuditedChange(what, target, detail) if what else command.audit_line
    if not who or line is None:
        return command
    return Audited(
        check_name("actor", who), line.what, _cut(line.target, 200), _cut(line.detail, 4000), command
    )


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


VERBS: Mapping[str, type[CommandBase]] = {
    kind.verb: kind for kind in (Scan, Act, OperationSet, Operations, OperationGet, Audited)
}
