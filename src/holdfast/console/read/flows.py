"""Flows: what operators see of them, and do to them."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from holdfast.bounds import Name, most
from holdfast.client.descriptors import AnyClient, CommandMethod, PlanMethod
from holdfast.commands import Command
from holdfast.commands.flows import (
    ENDED,
    FlowClose,
    FlowFacts,
    FlowForget,
    FlowGet,
    FlowList,
    FlowStates,
    FlowStep,
    FlowSteps,
    counts_of,
    summary_of,
    to_cancel,
)
from holdfast.commands.job_rows import JobRow
from holdfast.commands.jobs import JobGet
from holdfast.commands.operations import Scan
from holdfast.console import actions
from holdfast.console.operations.spec import Spec
from holdfast.console.read.job_tree import MEMBER
from holdfast.console.read.queries import Page, checked_limit
from holdfast.errors import JobNotFound, Refused, UsageError
from holdfast.settings import MAX_BATCH, check_name, check_names, check_whole
from holdfast.wire.plans import Plan, Planner

GONE: Final = "gone"
"""The state of a job that is not kept any more: it was cancelled, or completed long ago."""
FlowAction = Literal["retry", "cancel"]
CHANGES: Final[Mapping[FlowAction, frozenset[str]]] = {
    "retry": frozenset(("failed",)),
    "cancel": frozenset(("waiting", "running", "stalled", "scheduled", "depends", "throttled", "failed")),
}
"""The states of the jobs that an action on a flow changes."""
_RETURNED: Final = re.compile(r"(.+)\.([1-9][0-9]{0,8})", re.DOTALL)
"""The id of a flow that a job returned: the jid of the job, and its attempt."""
_PAGE: Final = 100
_LOOKS: Final = 16
"""How often the states of 4,096 jobs are read for one page of those in a state."""


class FlowLine(msgspec.Struct, frozen=True):
    """A flow with its state, and how many of its jobs are in each state; of a large group those that have not ended are `unfinished`."""

    facts: FlowFacts
    state: str
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many jobs are counted."""
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """How many of them have ended."""
        return sum(self.counts.get(state, 0) for state in ENDED)

    @property
    def begun(self) -> tuple[tuple[str, int], ...]:
        """How many of them have ended how, and how many run."""
        states = ("complete", "failed", GONE, "running")
        return tuple((state, self.counts[state]) for state in states if state in self.counts)


class FlowDetail(FlowLine, frozen=True):
    """A flow with the jobs that it was put with, in their order: what each was put as (`steps`), and what it is now.

    Job 0 may stand for a large group, whose jobs are not among them. Steps are missing of a flow that an older release put. `returned_by` is the
    job that returned it, and ends as it does.
    """

    jobs: tuple[JobRow, ...] = ()
    steps: tuple[FlowStep, ...] = ()
    returned_by: str = ""


class FlowPlace(msgspec.Struct, frozen=True):
    """The flow that a job is part of, its number in it (from 0 on), how many jobs that has, and the name of the flow for people."""

    flow: str
    number: int
    total: int
    label: str


# What there is.


def _found(ask: Planner, flow: str) -> Plan[FlowFacts]:
    """Return the facts of a flow. Raises JobNotFound."""
    [facts] = yield from ask(FlowGet([check_name("flow", flow)]))
    if facts is None:
        raise JobNotFound(f"flow {flow} does not exist", "HF_JOB_NOT_FOUND")
    return facts


def _line(ask: Planner, facts: FlowFacts) -> Plan[FlowLine]:
    try:
        states = yield from ask(FlowStates(facts.id, 0, facts.steps))
    except JobNotFound:  # it was taken off the list meanwhile
        states = [GONE] * facts.steps
    return FlowLine(facts, summary_of(facts, states), counts_of(facts, states))


def flows(ask: Planner, after: str, limit: int) -> Plan[Page[FlowLine]]:
    """Return a page of flows, the newest first. Raises UsageError."""
    score, _, member = after.partition(" ")
    if after and not (score.isdecimal() and member):
        raise UsageError(f"after: expected the cursor that the page before had, got {after!r:.80}")
    cursor, total, ids = yield from ask(FlowList(after, checked_limit(limit)))
    found = (yield from ask(FlowGet(ids))) if ids else []
    lines: list[FlowLine] = []
    for facts in found:
        lines += [] if facts is None else [(yield from _line(ask, facts))]
    return Page(tuple(lines), cursor, total)


def flow(ask: Planner, jid: str) -> Plan[FlowDetail]:
    """Return a flow with the jobs that it was put with. Raises JobNotFound."""
    facts = yield from _found(ask, jid)
    rows = yield from _rows(ask, facts, 0, facts.steps)
    try:
        steps = yield from ask(FlowSteps(jid))
    except JobNotFound:  # put before that was kept
        steps = []
    klasses = [step.klass for step in steps] if len(steps) == facts.steps else [""] * facts.steps
    jobs = tuple(
        row if row.klass else msgspec.structs.replace(row, klass=klass)
        for row, klass in zip(rows, klasses, strict=True)
    )
    states = [job.state for job in jobs]
    returned_by = yield from _returned_by(ask, jid)
    return FlowDetail(
        facts, summary_of(facts, states), counts_of(facts, states), jobs, tuple(steps), returned_by
    )


def _returned_by(ask: Planner, flow: str) -> Plan[str]:
    """Return the job that returned a flow, "" if no job did, or it is not kept any more."""
    named = _RETURNED.fullmatch(flow)
    if not named:
        return ""
    [job] = yield from ask(JobGet((named[1],)))
    return named[1] if job is not None and job.attempts >= int(named[2]) else ""


def _rows(ask: Planner, facts: FlowFacts, first: int, stop: int) -> Plan[list[JobRow]]:
    """Return the jobs with the numbers from `first` up to `stop`, also those that are not kept any more."""
    known: dict[str, JobRow] = {}
    at = first
    while at < stop:
        after = (str(at - 1), f"{facts.id}-{at - 1}") if at else None
        page = yield from ask(Scan("flow", facts.id, after, min(stop - at, MAX_BATCH), "e"))
        known.update({row.jid: row for row in page.jobs})
        at = at + page.looked if page.looked else stop
    jids = [f"{facts.id}-{number}" for number in range(first, stop)]
    return [known.get(jid) or JobRow(jid, state=GONE) for jid in jids]


class JobsOfFlow(msgspec.Struct, frozen=True):
    """Some jobs of a flow, and the number from which on the others are, -1 if there are none."""

    jobs: tuple[JobRow, ...]
    next: int


def jobs_of(ask: Planner, jid: str, state: str, first: int, limit: int) -> Plan[JobsOfFlow]:
    """Return up to `limit` jobs of a flow of any size that are in a state ("": in any), from the one with the number `first` on.

    It looks at some 65,000 jobs. Raises JobNotFound, UsageError.
    """
    facts, size = (yield from _found(ask, jid)), checked_limit(limit)
    at = check_whole("first", first, 0, 1 << 40)
    if not state:
        stop = min(at + size, facts.total)
        rows = yield from _rows(ask, facts, at, stop)
        return JobsOfFlow(tuple(rows), stop if stop < facts.total else -1)
    numbers: list[int] = []
    for _ in range(_LOOKS):
        states = yield from ask(FlowStates(jid, at))
        found = [at + n for n, one in enumerate(states) if one == state][: size - len(numbers)]
        numbers += found
        at = found[-1] + 1 if len(numbers) == size else at + len(states)
        if len(numbers) == size or at >= facts.total:
            break
    found_rows: list[JobRow] = []
    for begin, stop in _runs(numbers):
        found_rows += yield from _rows(ask, facts, begin, stop)
    return JobsOfFlow(tuple(found_rows), at if at < facts.total else -1)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return numbers in a row as ranges: where each begins, and where it has ended."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = runs[-1][0], number + 1
        else:
            runs.append((number, number + 1))
    return runs


def returned_of(ask: Planner, jid: str, attempts: int) -> Plan[str]:
    """Return the flow that a job returned in its last attempt, "" if it did not."""
    flow = f"{jid}.{attempts}"
    if not attempts or len(flow.encode(errors="surrogateescape")) > most(Name):
        return ""
    [facts] = yield from ask(FlowGet([flow]))
    return "" if facts is None else flow


def place_of(ask: Planner, jid: str) -> Plan[FlowPlace | None]:
    """Return the place of a job in its flow, None for a job that is part of none; most are known by their jids to be of none."""
    found = MEMBER.fullmatch(jid)
    if not found:
        return None
    name, number = found[1], int(found[2])
    [facts] = yield from ask(FlowGet([name]))
    if facts is None or number >= facts.total:
        return None
    return FlowPlace(name, number, facts.total, facts.label)


# What is done to them.


def changed_by(ask: Planner, jid: str, action: FlowAction) -> Plan[list[str]]:
    """Return the jids of the jobs that an action on a flow changes. Those to cancel begin with those that wait for others.

    Raises JobNotFound, UsageError.
    """
    if action not in CHANGES:
        raise UsageError(f"action: expected one of {', '.join(CHANGES)}, got {action!r:.80}")
    facts = yield from _found(ask, jid)
    numbers: list[int] = []
    at = 0
    while at < facts.total:
        states = yield from ask(FlowStates(jid, at))
        numbers += [number for number, state in enumerate(states, at) if state in CHANGES[action]]
        at = at + len(states) if states else facts.total
    return to_cancel(facts, numbers) if action == "cancel" else [f"{jid}-{number}" for number in numbers]


def ended_well(ask: Planner) -> Plan[list[str]]:
    """Return the flows whose jobs have all ended, none of them with a failure."""
    found: list[str] = []
    cursor = ""
    while True:
        page = yield from flows(ask, cursor, _PAGE)
        found += [
            line.facts.id for line in page.rows if line.counts and line.counts.keys() <= {"complete", GONE}
        ]
        cursor = page.next
        if not cursor:
            return found


class FlowVerbs:
    """The queries and actions of operators on flows."""

    _client: AnyClient
    actor: str

    @PlanMethod
    def flows(self, ask: Planner, *, after: str = "", limit: int = 25) -> Plan[Page[FlowLine]]:
        """A page of flows, the newest first. The store keeps 10,000 of them for 7 days."""
        return flows(ask, after, limit)

    @PlanMethod
    def flow(self, ask: Planner, jid: str) -> Plan[FlowDetail]:
        """One flow with its jobs. Raises JobNotFound."""
        return flow(ask, jid)

    @PlanMethod
    def jobs_of_flow(
        self, ask: Planner, jid: str, state: str = "", *, first: int = 0, limit: int = _PAGE
    ) -> Plan[JobsOfFlow]:
        """Up to `limit` jobs of a flow of any size, in a state ("": in any), from the one with the number `first` on. Raises JobNotFound."""
        return jobs_of(ask, jid, state, first, limit)

    @PlanMethod
    def flow_of(self, ask: Planner, jid: str) -> Plan[FlowPlace | None]:
        """The place of a job in its flow, None for a job that is part of none."""
        return place_of(ask, jid)

    @PlanMethod
    def changed_by_flow(self, ask: Planner, jid: str, action: FlowAction) -> Plan[list[str]]:
        """The jids of the jobs of a flow that a retry or a cancel of it changes. Raises JobNotFound, UsageError."""
        return changed_by(ask, jid, action)

    @PlanMethod
    def change_flow(
        self, ask: Planner, jid: str, action: FlowAction
    ) -> Plan[list[tuple[str, bool | Refused]]]:
        """Retry the failed jobs of a flow, or cancel those that are not complete, as `act` does; returns what that returns."""
        jids = yield from changed_by(ask, jid, action)
        return (yield from actions.act(ask, self.actor, Spec(action=action), jids)) if jids else []

    @PlanMethod
    def ended_flows(self, ask: Planner) -> Plan[list[str]]:
        """The flows whose jobs have all ended, none of them with a failure."""
        return ended_well(ask)

    @CommandMethod
    def close_flow(self, jid: str) -> Command[bool]:
        """Add no more calls to the large group of a flow. Returns False if it was closed before. Raises JobNotFound."""
        return FlowClose(check_name("flow", jid))

    @CommandMethod
    def forget_flows(self, *jids: str) -> Command[list[bool]]:
        """Take up to 512 flows off the list; their jobs stay as they are. Returns for each whether it was there."""
        return FlowForget(check_names("flow", jids, MAX_BATCH))
