"""What a job waits for and what waits for it, step by step; of a flow also what did so before and has ended."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from holdfast.commands.admin import Info
from holdfast.commands.flows import FlowGet, FlowStep, FlowSteps
from holdfast.commands.jobs import JobGet
from holdfast.console.search.search import as_counted
from holdfast.errors import JobNotFound
from holdfast.models import JobFacts
from holdfast.settings import MAX_BATCH, check_name, check_whole
from holdfast.wire.plans import Plan, Planner

MAX_DEPTH: Final = 50
_MEMBER: Final = re.compile(r"(.+)-(0|[1-9]\d{0,8})", re.DOTALL | re.ASCII)
_Direction = Literal["before", "after"]


class TreeJob(msgspec.Struct):
    """A job of a tree, with the `jobs` that it waits for, or that wait for it.

    `on_failure` is what becomes of the waiting one of this job and the one that it is shown below, "" if that is not known. `more`: how
    many jobs below it are not shown. `is_repeated`: those are shown where it stands first.
    """

    jid: str
    state: str = "gone"
    klass: str = ""
    queue: str = ""
    on_failure: str = ""
    jobs: list["TreeJob"] = []
    more: int = 0
    is_repeated: bool = False


class JobTree(msgspec.Struct, frozen=True):
    """A job of a `flow` ("": of none) with the jobs that it waits for, and those that wait for it."""

    flow: str
    waits_for: TreeJob
    waited_for_by: TreeJob


def job_tree(ask: Planner, jid: str, depth: int, limit: int) -> Plan[JobTree]:
    """Return the tree of a job: `depth` steps and `limit` jobs in each direction, at most. Raises JobNotFound."""
    check_whole("depth", depth, 1, MAX_DEPTH)
    check_whole("limit", limit, 1, MAX_BATCH)
    known = _Known((yield from ask(Info())).now_ms)
    yield from known.read(ask, [check_name("jid", jid)])
    if known.jobs[jid] is None:
        raise JobNotFound(f"job {jid} does not exist", "HF_JOB_NOT_FOUND")
    before = yield from _branch(ask, known, jid, "before", depth, limit)
    after = yield from _branch(ask, known, jid, "after", depth, limit)
    return JobTree(known.flow_of(jid), before, after)


def _branch(
    ask: Planner, known: "_Known", jid: str, direction: _Direction, depth: int, limit: int
) -> Plan[TreeJob]:
    root = known.tree_job(jid)
    level, seen, left = [root], {jid}, limit
    for _ in range(depth):
        below: list[TreeJob] = []
        for parent in level:
            relatives = known.relatives(parent.jid, direction)
            shown = dict(list(relatives.items())[:left])
            parent.jobs = [TreeJob(one, on_failure=policy) for one, policy in shown.items()]
            parent.more, left = len(relatives) - len(shown), left - len(shown)
            below += parent.jobs
        yield from known.read(ask, [one.jid for one in below])
        level = []
        for one in below:
            found = known.tree_job(one.jid)
            one.state, one.klass, one.queue = found.state, found.klass, found.queue
            one.is_repeated = one.jid in seen
            if not one.is_repeated:
                seen.add(one.jid)
                level.append(one)
    for one in level:
        one.more = len(known.relatives(one.jid, direction))
    return root


class _Known:
    """The jobs that were read, and the steps of their flows."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self.jobs: dict[str, JobFacts | None] = {}
        self._flows: dict[str, Sequence[FlowStep]] = {}

    def read(self, ask: Planner, jids: Iterable[str]) -> Plan[None]:
        """Read jobs that are not known, and their flows."""
        new = [jid for jid in dict.fromkeys(jids) if jid not in self.jobs]
        if not new:
            return
        self.jobs.update(zip(new, (yield from ask(JobGet(new))), strict=True))
        members = [member[1] for jid in new if (member := _MEMBER.fullmatch(jid))]
        flows = [flow for flow in dict.fromkeys(members) if flow not in self._flows]
        found = (yield from ask(FlowGet(flows))) if flows else []
        for flow, facts in zip(flows, found, strict=True):
            self._flows[flow] = [] if facts is None else (yield from _steps(ask, flow))

    def flow_of(self, jid: str) -> str:
        """Return the flow of a job, "" if it is of none."""
        return "" if self._step(jid) is None else jid.rpartition("-")[0]

    def tree_job(self, jid: str) -> TreeJob:
        """Return a job that was read, without others."""
        facts, step = self.jobs[jid], self._step(jid)
        if facts is None:
            return TreeJob(jid, klass=step.klass if step else "")
        return TreeJob(jid, as_counted(facts, self._now_ms).state, facts.klass, facts.queue)

    def relatives(self, jid: str, direction: _Direction) -> Mapping[str, str]:
        """Return the jobs that a job waits for, or that wait for it, with what becomes of the waiting one if the other fails."""
        facts, flow = self.jobs[jid], self.flow_of(jid)
        found: dict[str, str] = {}
        if flow and direction == "before":
            found = _parents(self._flows[flow], flow, int(jid.rpartition("-")[2]))
        elif flow:
            found = _children(self._flows[flow], flow, int(jid.rpartition("-")[2]))
        for one in (facts.dependencies if direction == "before" else facts.dependents) if facts else ():
            found.setdefault(one, "")
        return found

    def _step(self, jid: str) -> FlowStep | None:
        member = _MEMBER.fullmatch(jid)
        steps = self._flows.get(member[1], ()) if member else ()
        return steps[int(member[2])] if member and int(member[2]) < len(steps) else None


def _steps(ask: Planner, flow: str) -> Plan[Sequence[FlowStep]]:
    """Return what the jobs of a flow wait for; nothing of one that was forgotten, or put before that was kept."""
    try:
        return (yield from ask(FlowSteps(flow)))
    except JobNotFound:
        return []


def _parents(steps: Sequence[FlowStep], flow: str, number: int) -> dict[str, str]:
    return {
        jid: one.policy
        for one in steps[number].parents
        for jid in ([one.jid] if one.jid else [f"{flow}-{at}" for at in range(one.first, one.last + 1)])
    }


def _children(steps: Sequence[FlowStep], flow: str, number: int) -> dict[str, str]:
    return {
        f"{flow}-{at}": one.policy
        for at, step in enumerate(steps)
        for one in step.parents
        if not one.jid and one.first <= number <= one.last
    }
