"""Change all jobs that a filter matches: make a dry run, start, continue, stop and undo it.

An operation is one record in the store. It goes forward in chunks: each reads the next page of the search, and changes what
matches in the same call that notes how far it got. Whoever takes over continues there.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from holdfast.commands.job_rows import JobRow
from holdfast.commands.operations import (
    MAX_CHANGED,
    Act,
    Audited,
    OperationDetail,
    OperationFacts,
    OperationGet,
    OperationSet,
    Progress,
)
from holdfast.console.filters import Filter
from holdfast.console.operations.dependents import with_dependents
from holdfast.console.operations.spec import APPLIES, INVERSE, Spec, check_spec, pairs_of
from holdfast.console.search.search import (
    STATES,
    Chunk,
    Pace,
    Position,
    SearchPlan,
    by_jid,
    chunk,
    page_size,
    planned,
    wants_of,
)
from holdfast.errors import Refused, WrongState, refusal
from holdfast.ids import mint_jid
from holdfast.settings import check_name
from holdfast.wire.plans import Plan, Planner

LEASE_MS: Final = 30_000
"""How long a program keeps an operation without reporting progress."""
AT_ONCE: Final = 128
"""The number of jobs that one call changes, and that a chunk reads; a chunk after one without matches reads more."""


class Operation(msgspec.Struct, frozen=True):
    """An operation: what it does, its state, and how far it got. Times are milliseconds of the store's clock.

    `state` is running, stopped, done, failed or undone; `is_orphaned`: it is running, but no program has reported for a while.
    `undo_until_ms` is 0 if it cannot be undone.
    """

    id: str
    spec: Spec
    state: str
    runner: str
    created_ms: int
    updated_ms: int
    looked: int
    matched: int
    changed: int
    same: int
    refused: int
    is_orphaned: bool = False
    refusals: tuple[tuple[str, str], ...] = ()
    undo_until_ms: int = 0

    def is_planned(self, now_ms: int) -> bool:
        """Return whether it has not begun: until its time comes, whoever started it can take it back."""
        return self.state == "running" and self.spec.starts_ms > now_ms

    @property
    def can_be_undone(self) -> bool:
        """Whether its action has an inverse."""
        return self.spec.action in INVERSE

    @property
    def share(self) -> float:
        """The part of the jobs that was looked at, from 0 to 1."""
        if self.state == "done" or not self.spec.candidates:
            return 1.0
        return min(self.looked / self.spec.candidates, 1.0)


UNDO_MS: Final = 3_600_000
_AHEAD_MS: Final = 1000
_END: Final = Position("end")
_NOWHERE: Final = SearchPlan((), "")


def _spec_of(facts: OperationFacts) -> Spec:
    try:
        return msgspec.json.decode(facts.spec.encode(), type=Spec)
    except msgspec.MsgspecError as error:
        raise WrongState(f"the record of operation {facts.id} cannot be read: {error}") from None


def operation_of(facts: OperationFacts, now_ms: int, detail: OperationDetail | None = None) -> Operation:
    """Return an operation as people want to see it. A record that cannot be read has an empty spec."""
    try:
        spec = _spec_of(facts)
    except WrongState:
        spec = Spec(action="move", filter="jid:unreadable")
    can_undo = spec.action in INVERSE and facts.changed > 0 and facts.state in ("done", "stopped", "failed")
    until = facts.updated_ms + UNDO_MS if can_undo and facts.updated_ms + UNDO_MS > now_ms else 0
    return Operation(
        facts.id,
        spec,
        facts.state,
        facts.runner,
        facts.created_ms,
        facts.updated_ms,
        facts.looked,
        facts.matched,
        facts.changed,
        facts.same,
        facts.refused,
        facts.state == "running" and facts.lease_ms < now_ms,
        detail.refused if detail else (),
        until,
    )


Match = Callable[[JobRow], bool]


def _one_run_of(runner: str) -> str:
    """Return a name for one run of an operation: two of one program are two."""
    return f"{runner}-{mint_jid()[-6:]}"


def _all(_: JobRow) -> bool:
    return True


class RunningOperation(msgspec.Struct):
    """An operation that this program runs: its plan, where it continues, and what it has done so far in this run."""

    id: str
    runner: str
    spec: Spec
    plan: SearchPlan
    at: Position
    wants: str
    matches: Match
    is_over: bool = False
    looked: int = 0
    matched: int = 0
    changed: int = 0
    refused: int = 0
    skip: int = 0
    """Jobs of the next part of an undo that an earlier run has done."""
    before: int = 0
    """Jobs that earlier runs matched."""
    finds: bool = True
    """Whether a job matched of those that it looked at last."""
    began_ms: int = 0
    """The time of the store's clock when this run began."""
    began: float = msgspec.field(default_factory=time.monotonic)

    @property
    def latest_ms(self) -> int:
        """A time that the store's clock has not passed yet."""
        return self.began_ms + round((time.monotonic() - self.began) * 1000) + _AHEAD_MS

    @property
    def room(self) -> int:
        """How many jobs may still be changed."""
        return self.spec.most - self.before - self.matched if self.spec.most else sys.maxsize

    def note(self, looked: int, results: Sequence[bool | Refused]) -> int:
        """Count what one call did. Returns how many jobs it changed."""
        changed = sum(one is True for one in results)
        self.looked, self.matched = self.looked + looked, self.matched + len(results)
        self.changed += changed
        self.refused += sum(isinstance(one, Refused) for one in results)
        return changed


def start(ask: Planner, spec: Spec, runner: str, now_ms: int) -> Plan[RunningOperation]:
    """Note an operation in the store, with one line in the audit log, and return it ready to run."""
    spec = check_spec(spec)
    query = spec.query
    plan = yield from planned(ask, query, APPLIES.get(spec.action, STATES))
    spec = msgspec.structs.replace(spec, candidates=plan.candidates, planned_ms=now_ms)
    id, runner = mint_jid(), _one_run_of(runner)
    command = OperationSet("start", id, runner, LEASE_MS, msgspec.json.encode(spec).decode())
    line = f"{spec.filter}" + (f" → {spec.value}" if spec.value else "")
    yield from ask(Audited(spec.who or "unnamed", f"bulk {spec.action}", id, line[:4000], command))
    wants, matches = _wants(spec, query, plan), query.matcher(now_ms)
    return RunningOperation(id, runner, spec, plan, Position(), wants, matches, began_ms=now_ms)


def _wants(spec: Spec, query: Filter, plan: SearchPlan) -> str:
    return "".join(sorted({*wants_of(query, plan), *("d" if spec.action == "data" else "")}))


def resume(ask: Planner, id: str, runner: str, now_ms: int) -> Plan[RunningOperation]:
    """Take over an operation that was stopped or that no program runs. Raises OperationNotFound, WrongState."""
    runner = _one_run_of(runner)
    yield from ask(OperationSet("take", check_name("operation", id), runner, LEASE_MS))
    detail = yield from ask(OperationGet(id))
    if detail is None:
        raise refusal(f"HF_OPERATION_NOT_FOUND {id}")
    spec = _spec_of(detail.facts)
    at = Position.parse(detail.facts.cursor)
    if spec.undoes:
        skip = detail.facts.looked - _undone_before(at)
        return RunningOperation(id, runner, spec, _NOWHERE, at, "", _all, skip=skip)
    query = spec.query
    plan = yield from planned(ask, query, APPLIES.get(spec.action, STATES))
    place = _NOWHERE if at == _END else plan
    wants, matches = _wants(spec, query, plan), query.matcher(now_ms)
    return RunningOperation(
        id, runner, spec, place, at, wants, matches, before=detail.facts.matched, began_ms=now_ms
    )


def step(ask: Planner, running: RunningOperation, count: int = AT_ONCE) -> Plan[int]:
    """Go forward by one chunk: look at some jobs, and change up to `count` of those that match. Returns how many changed.

    Raises WrongState when the operation was stopped or taken over meanwhile.
    """
    if running.spec.undoes:
        return (yield from _undo_step(ask, running))
    if running.plan.jids:
        return (yield from _jid_step(ask, running, count))
    size = AT_ONCE if running.finds else page_size(running.wants)
    some = yield from chunk(ask, running.plan, running.at, size, running.wants)
    if some is None:
        return (yield from _finish(ask, running))
    rows, looked, following = yield from _matching(running, some, min(count, AT_ONCE, running.room))
    running.finds = bool(rows)
    return (yield from _act(ask, running, looked, rows, following))


def _matching(running: RunningOperation, some: Chunk, most: int) -> Plan[tuple[list[JobRow], int, Position]]:
    """Return the first `most` jobs of a page that match, how many were looked at for them, and the place behind these."""
    pace = Pace()
    rows: list[JobRow] = []
    latest_ms = running.latest_ms
    for looked, (row, score) in enumerate(zip(some.page.jobs, some.page.scores, strict=True), 1):
        if running.matches(row) and not is_done(running.spec, row, latest_ms):
            rows.append(row)
            if len(rows) == most and row is not some.page.jobs[-1]:
                return rows, looked, some.behind(row, score)
        if pace.is_due:
            yield from pace.turn()
    return rows, some.page.looked, some.following


def is_done(spec: Spec, row: JobRow, now_ms: int = 0) -> bool:
    """Return whether a job is left alone, because it is as the action would make it.

    What an action orders the jobs by moves them behind the place where it is, so that it meets them again: a job is changed
    once. A move leaves a job that waits in that queue already, or came into it since the beginning; a delay one that is due
    when the jobs delayed by it are, until `now_ms`.
    """
    if spec.action == "priority":
        return row.priority == int(float(spec.value))
    if spec.action == "delay":
        if row.state != "scheduled":
            return row.state == "waiting" and float(spec.value) == 0
        return 0 < spec.planned_ms <= row.due_ms - float(spec.value) * 1000 + 1 <= now_ms
    if spec.action != "move" or row.queue != spec.value:
        return False
    return row.state in ("waiting", "depends") or row.queued_ms >= spec.planned_ms > 0


def change_all(ask: Planner, command: Act) -> Plan[list[bool | Refused]]:
    """Run a change in as many calls as it takes: one call does a limited amount of work."""
    results: list[bool | Refused] = yield from ask(command)
    while len(results) < len(command.jobs):
        done = len(results)
        left = msgspec.structs.replace(
            command, jobs=command.jobs[done:], operation=command.operation.without(done)
        )
        results += yield from ask(left)
    return results


def _act(
    ask: Planner, running: RunningOperation, looked: int, rows: Sequence[JobRow], following: Position
) -> Plan[int]:
    pairs = pairs_of(running.spec, rows)
    if running.spec.dependents and rows:
        family, _ = yield from with_dependents(ask, [row.jid for row in rows])
        pairs = [(jid, "") for jid in family]
    if len(pairs) >= running.room:
        following = Position()
    changed = 0
    while len(pairs) > MAX_CHANGED:  # only a job with dependents can be that large
        some, pairs = pairs[:MAX_CHANGED], pairs[MAX_CHANGED:]
        changed += yield from _send(ask, running, some, str(running.at), 0)
    changed += yield from _send(ask, running, pairs, str(following if following.set else _END), looked)
    running.at = following
    if not running.at.set:
        yield from _finish(ask, running)
    return changed


def _send(
    ask: Planner,
    running: RunningOperation,
    pairs: Sequence[tuple[str, str | bytes]],
    cursor: str,
    looked: int,
) -> Plan[int]:
    progress = Progress(running.id, running.runner, LEASE_MS, cursor, looked, len(pairs))
    command = Act(running.spec.action, pairs, running.spec.common, running.spec.who, progress)
    return running.note(looked, (yield from change_all(ask, command)))


def keep(ask: Planner, running: RunningOperation) -> Plan[object]:
    """Renew the lease of an operation that makes a pause. Raises WrongState if it was stopped or taken over."""
    progress = Progress(running.id, running.runner, LEASE_MS, str(running.at))
    return (yield from ask(Act(running.spec.action, (), operation=progress)))


def _jid_step(ask: Planner, running: RunningOperation, count: int) -> Plan[int]:
    """Change jobs that the filter names by jid; the cursor counts the jids."""
    first = int(running.at.name or 0)
    count = min(count, running.room)
    some = SearchPlan((), "", running.plan.jids[first : first + count])
    page = yield from by_jid(ask, some, running.matches, running.began_ms)
    is_last = first + count >= len(running.plan.jids)
    following = Position() if is_last else Position("jid", str(first + count))
    return (yield from _act(ask, running, page.looked, page.jobs, following))


def _finish(ask: Planner, running: RunningOperation, state: str = "done") -> Plan[int]:
    running.is_over = True
    if running.spec.undoes:
        yield from ask(OperationSet("finish", running.spec.undoes, detail="undone"))
    yield from ask(OperationSet("finish", running.id, running.runner, 0, state))
    return 0


def stop(ask: Planner, id: str, who: str) -> Plan[bool]:
    """Stop an operation, whoever runs it: its runner notices at its next chunk. Returns whether it was running."""
    command = OperationSet("finish", check_name("operation", id), detail="stopped")
    was_running: bool = yield from ask(Audited(who, "stop operation", id, "", command) if who else command)
    return was_running


def undo(ask: Planner, id: str, who: str, runner: str, now_ms: int) -> Plan[RunningOperation]:
    """Begin to undo an operation. Raises OperationNotFound, WrongState if it cannot be undone (any more)."""
    detail = yield from ask(OperationGet(check_name("operation", id)))
    if detail is None:
        raise refusal(f"HF_OPERATION_NOT_FOUND {id}")
    found = operation_of(detail.facts, now_ms, detail)
    if found.state == "running":
        raise WrongState(f"operation {id} is running; stop it first")
    if found.spec.action not in INVERSE or found.state == "undone":
        raise WrongState(f"operation {id} ({found.spec.action}, {found.state}) cannot be undone")
    if not detail.chunks:
        raise WrongState(f"operation {id} can only be undone for an hour")
    spec = Spec(
        action=INVERSE[found.spec.action],
        who=who,
        undoes=id,
        candidates=found.changed,
        filter=found.spec.filter,
    )
    new, runner = mint_jid(), _one_run_of(runner)
    command = OperationSet("start", new, runner, LEASE_MS, msgspec.json.encode(spec).decode())
    yield from ask(Audited(who or "unnamed", f"undo {found.spec.action}", id, "", command))
    return RunningOperation(new, runner, spec, _NOWHERE, Position(), "", _all)


def _undone_before(at: Position) -> int:
    """Return how many jobs the parts before a position of an undo have."""
    return int(at.after[0]) if at.after else 0


def _undo_step(ask: Planner, running: RunningOperation) -> Plan[int]:
    """Undo one part of the changes. The cursor of an undo counts the parts, and the jobs of these."""
    offset = int(running.at.name or 0)
    before = _undone_before(running.at)
    detail = yield from ask(OperationGet(running.spec.undoes, offset, 1))
    if detail is None or not detail.changed:
        return (yield from _finish(ask, running))
    pairs, running.skip = detail.changed[max(running.skip, 0) :], 0
    running.at = Position("undo", str(offset + 1), (str(before + len(detail.changed)), ""))
    progress = Progress(running.id, running.runner, LEASE_MS, str(running.at), len(pairs), len(pairs))
    command = Act(running.spec.action, pairs, "", running.spec.who, progress)
    return running.note(len(pairs), (yield from change_all(ask, command)))
